"""Edits that change no behaviour: a finding that they bring is a false alarm."""

from __future__ import annotations

import ast
import random
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from tests.mutations.edits import Edit, apply
from tests.mutations.faults import Release

Change = dict[str, str]
"""New text by file."""


def _file(release: Release, rng: random.Random) -> str:
    files = sorted({holder.partition("::")[0] for holder in release.holders()})
    return rng.choice(files)


def _text(release: Release, file: str) -> str:
    return (release.root / file).read_text("utf-8")


def comments(release: Release, rng: random.Random) -> Change:
    """A comment before every third statement of a function's body."""
    file = _file(release, rng)
    lines = _text(release, file).splitlines(keepends=True)
    starts = [
        s.lineno
        for node in ast.walk(release.tree(file))
        if isinstance(node, ast.FunctionDef)
        for s in node.body[1::3]
    ]
    for start in sorted(starts, reverse=True):
        indent = re.match(r"\s*", lines[start - 1])
        lines.insert(start - 1, f"{indent[0] if indent else ''}# Changes nothing.\n")
    return {file: "".join(lines)}


def reformat(release: Release, rng: random.Random) -> Change:
    """Another line length."""
    file = _file(release, rng)
    command = [sys.executable, "-m", "ruff", "format", "--isolated", "--line-length", "140", "-"]
    done = subprocess.run(
        command, input=_text(release, file), text=True, capture_output=True, check=True
    )
    return {file: done.stdout}


def reorder(release: Release, rng: random.Random) -> Change:
    """The methods of a class the other way round."""
    file = _file(release, rng)
    text = _text(release, file)
    lines = text.splitlines(keepends=True)
    classes = [n for n in release.tree(file).body if isinstance(n, ast.ClassDef)]
    for node in sorted(classes, key=lambda n: n.lineno, reverse=True):
        methods = [m for m in node.body if isinstance(m, ast.FunctionDef)]
        if (
            len(methods) < 2
            or any(m.decorator_list for m in methods)
            or methods != node.body[-len(methods) :]
        ):
            continue
        first, last = methods[0].lineno - 1, methods[-1].end_lineno or 0
        parts = [lines[m.lineno - 1 : m.end_lineno] for m in methods]
        lines[first:last] = [line for part in reversed(parts) for line in [*part, "\n"]]
    return {file: "".join(lines)}


def rename_local(release: Release, rng: random.Random) -> Change:
    """A local name of a function on the cycle is called something else."""
    holders = release.holders()
    rng.shuffle(holders)
    for holder in holders:
        node = release.function(holder)
        if node is None:
            continue
        inner = [
            n
            for n in ast.walk(node)
            if isinstance(n, ast.FunctionDef | ast.Lambda) and n is not node
        ]
        stored = Counter(
            n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
        )
        names = sorted(set(stored) - {a.arg for a in node.args.args} - {"self"})
        if (
            inner
            or not names
            or any(isinstance(n, ast.Global | ast.Nonlocal) for n in ast.walk(node))
        ):
            continue
        name = rng.choice(names)
        file = holder.partition("::")[0]
        lines = _text(release, file).splitlines(keepends=True)
        places = [n for n in ast.walk(node) if isinstance(n, ast.Name) and n.id == name]
        for place in sorted(places, key=lambda n: (n.lineno, n.col_offset), reverse=True):
            line = lines[place.lineno - 1].encode()
            at = place.col_offset
            if line[at : at + len(name)] != name.encode():
                break  # inside an f-string
            lines[place.lineno - 1] = (
                line[:at] + f"{name}_here".encode() + line[at + len(name) :]
            ).decode()
        else:
            return {file: "".join(lines)}
    return {}


def _rename_everywhere(release: Release, old: str, new: str) -> Change:
    word = re.compile(rf"\b{old}\b")
    changed = {}
    for path in sorted(release.root.joinpath("sglang").rglob("*.py")):
        text = path.read_text("utf-8")
        if old in text:
            changed[path.relative_to(release.root).as_posix()] = word.sub(new, text)
    return changed


def rename_method(release: Release, rng: random.Random) -> Change:
    """A method is renamed in the whole tree, with all of its namesakes."""
    vocabulary = Path("rules/vocabulary.toml").read_text("utf-8")
    names = {holder.rpartition(".")[2] for holder in release.holders()}
    long = sorted(n for n in names if n not in vocabulary and n.count("_") > 1 and n.islower())
    name = rng.choice([n for n in long if not n.startswith("__")])
    return _rename_everywhere(release, name, f"{name}_renamed")


def rename_class(release: Release, rng: random.Random) -> Change:
    """A worker's class is renamed in the whole tree."""
    vocabulary = Path("rules/vocabulary.toml").read_text("utf-8")
    names = sorted(
        w.name for w in release.codemap.workers if w.reachable and w.name not in vocabulary
    )
    name = rng.choice(names)
    return _rename_everywhere(release, name, f"{name}Renamed")


def extract_method(release: Release, rng: random.Random) -> Change:
    """The value of one assignment is computed in a new method."""
    holders = release.holders()
    rng.shuffle(holders)
    for holder in holders:
        node = release.function(holder)
        if node is None or not any(a.arg == "self" for a in node.args.args) or node.decorator_list:
            continue
        local = {a.arg for a in [*node.args.args, *node.args.kwonlyargs]} | {
            n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
        }
        plain = [
            s for s in node.body if isinstance(s, ast.Assign) and isinstance(s.targets[0], ast.Name)
        ]
        plain = [
            s
            for s in plain
            if not any(
                isinstance(n, ast.comprehension | ast.Lambda | ast.NamedExpr) for n in ast.walk(s)
            )
        ]
        if not plain:
            continue
        chosen = rng.choice(plain)
        target = chosen.targets[0]
        assert isinstance(target, ast.Name)
        used = sorted(
            {n.id for n in ast.walk(chosen.value) if isinstance(n, ast.Name)} & local - {"self"}
        )
        typed = {a.arg: ast.unparse(a.annotation) for a in node.args.args if a.annotation}
        given = ", ".join(["self", *(f"{n}: {typed[n]}" if n in typed else n for n in used)])
        method = f"def _extracted({given}):\n    return {ast.unparse(chosen.value)}\n"
        call = f"self._extracted({', '.join(used)})"
        file = holder.partition("::")[0]
        edits = [
            Edit("value", chosen.lineno, target.id, call),
            Edit("insert", node.lineno, "", method),
        ]
        return {file: apply(_text(release, file), edits)}
    return {}


HARMLESS: tuple[Callable[[Release, random.Random], Change], ...] = (
    comments,
    reformat,
    reorder,
    rename_local,
    rename_method,
    rename_class,
    extract_method,
)
