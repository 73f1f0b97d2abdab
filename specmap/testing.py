"""Runs a rule's own examples; our tests and other people's rule packs use it alike.

An example is one file in a rule's ``valid/`` or ``invalid/`` folder. It holds sections, each
begun by a line ``# file: sglang/srt/...``, which are laid over the tree in ``_tree/`` beside
the rule folders (ours where a pack has none). A section ``# function: FILE::Class.method``
replaces one function of a file, or gives the class one more, and leaves the rest as it is.
``# platform: hip`` before the first section scans for another platform. A line that ends with
``# expect: SPM101`` is where a finding is due, one for each id named; an example in ``valid/``
expects none.

    from specmap.testing import check_example, examples

    @pytest.mark.parametrize("example", examples(Path("my_rules")), ids=str)
    def test_example(example):
        check_example(example)
"""

from __future__ import annotations

import ast
import re
import tempfile
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from specmap.codemap.finding import Match
from specmap.codemap.graph import CodeMap
from specmap.codemap.rule import Rule
from specmap.errors import RulesError
from specmap.lint.rulebook import check_parameters, detector_of, load_folder
from specmap.pipeline import scan_tree
from specmap.scan.vocabulary import rules_folder

LEAST = 3
"""How many valid and how many invalid examples a rule must have."""

TREE = "_tree"
_SECTION = re.compile(r"# (file|function): (\S+)\n")
_PLATFORM = re.compile(r"^# platform: (?P<name>\w+)$", re.MULTILINE)
_EXPECT = re.compile(r"\s*# expect: (?P<ids>[A-Z]+\d+(?:, [A-Z]+\d+)*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Example:
    """One example of a rule, laid over the common tree.

    ``files`` maps paths to text without the markers; ``expected`` holds file and line of
    each finding that is due.
    """

    rule: Rule
    name: str
    valid: bool
    files: Mapping[str, str]
    expected: tuple[tuple[str, int], ...]
    platform: str = "cuda"

    def __str__(self) -> str:
        return f"{self.rule.id}/{'valid' if self.valid else 'invalid'}/{self.name}"


def examples(folder: Path | None = None) -> list[Example]:
    """Return every example of the rules in ``folder``, by default of our own.

    Raises:
        RulesError: a declaration or an example is wrong.
    """
    folder = folder or rules_folder()
    tree = folder / TREE if (folder / TREE).is_dir() else rules_folder() / TREE
    common = {
        path.relative_to(tree).as_posix(): path.read_text("utf-8")
        for path in sorted(tree.rglob("*.py"))
    }
    return [
        _example(path, rule, common)
        for rule in load_folder(folder)
        for kind in ("valid", "invalid")
        for path in sorted((folder / f"{rule.id}-{rule.name}" / kind).glob("*.py"))
        if not path.name.endswith(".fixed.py")
    ]


def check_example(example: Example) -> None:
    """Scan an example and compare the findings of its rule with what it expects.

    Raises:
        AssertionError: they differ; the message lists what is missing and what is too much.
        SpecmapError: the example cannot be scanned.
    """
    matches = matches_of(example.rule, scan_example(example))
    found = Counter((match.span.file, match.span.line) for match in matches)
    due = Counter(example.expected)
    if found != due:
        raise AssertionError(f"{example}: {'; '.join(_differences(found, due, matches))}")


def check_rule(rule: Rule, its_examples: list[Example]) -> None:
    """Check that a rule can run and has enough examples of both kinds.

    Raises:
        AssertionError: naming what is missing.
        RulesError: there is no such detector.
    """
    wrong = check_parameters(rule, rule.parameters)
    if wrong:
        raise AssertionError(f"{rule.id}: parameters: {'; '.join(wrong)}")
    if not rule.explanation.startswith(f"# {rule.id} {rule.name}\n"):
        raise AssertionError(f"{rule.id}: README.md must begin with '# {rule.id} {rule.name}'")
    for valid, kind in ((True, "valid"), (False, "invalid")):
        count = sum(e.rule.id == rule.id and e.valid is valid for e in its_examples)
        if count < LEAST:
            raise AssertionError(f"{rule.id}: {count} {kind} examples, at least {LEAST} are due")


def scan_example(example: Example) -> CodeMap:
    """Return the map of the example's tree, never from a cache."""
    with tempfile.TemporaryDirectory(prefix="specmap-example-") as name:
        for file, text in example.files.items():
            path = Path(name, file)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
        return scan_tree(name, platform=example.platform, use_cache=False)


def matches_of(rule: Rule, codemap: CodeMap) -> list[Match]:
    """Return the matches of one rule in a map, suppressed or not."""
    return list(detector_of(rule)(codemap, rule.parameters))


def _example(path: Path, rule: Rule, common: Mapping[str, str]) -> Example:
    valid = path.parent.name == "valid"
    where = f"{path.parent.parent.name}/{path.parent.name}/{path.name}"
    head, *parts = _SECTION.split(path.read_text("utf-8"))
    sections: dict[str, str] = {}
    for part, place, text in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
        file, _, name = place.partition("::")
        whole = sections.get(file, common.get(file, ""))
        sections[file] = _with_function(whole, name, text, where) if part == "function" else text
    expected = tuple(
        (file, line)
        for file, text in sections.items()
        for line, marked in _marked(text)
        if marked == rule.id
    )
    if not sections:
        raise RulesError(f"{where}: no section; begin one with '# file: sglang/srt/...'")
    if valid is bool(expected):
        wrong = "expects a finding" if valid else f"expects none; mark it '# expect: {rule.id}'"
        raise RulesError(f"{where}: {wrong}")
    platform = _PLATFORM.search(head)
    clean = {file: _EXPECT.sub("", text) for file, text in sections.items()}
    for file, text in clean.items():
        _check_python(text, f"{where}: {file}")
    named = platform["name"] if platform else "cuda"
    return Example(rule, path.stem, valid, {**common, **clean}, expected, named)


def _check_python(text: str, where: str) -> None:
    try:
        ast.parse(text)
    except SyntaxError as error:
        raise RulesError(f"{where}, line {error.lineno}: {error.msg}") from None


def _with_function(whole: str, name: str, text: str, where: str) -> str:
    """Return a file's text with a function in place of the one of that dotted name.

    A class that has none of that name gets it at its end.
    """
    tree = ast.parse(whole)
    owner, _, _ = name.rpartition(".")
    found, around = _defined(tree, name), _defined(tree, owner)
    lines = whole.splitlines(keepends=True)
    if isinstance(found, ast.FunctionDef):
        first = min([found.lineno, *(d.lineno for d in found.decorator_list)]) - 1
        last, column = found.end_lineno or first, found.col_offset
    elif isinstance(around, ast.ClassDef):
        first = last = around.end_lineno or 0
        column = around.body[0].col_offset
    else:
        raise RulesError(f"{where}: no class of {name!r} in the file; give it with '# file:'")
    new = textwrap.indent(text.strip("\n") + "\n", " " * column)
    return "".join([*lines[:first], new, *lines[last:]])


def _defined(tree: ast.Module, name: str) -> ast.stmt | None:
    """Return the class or function of a dotted name."""
    body: Sequence[ast.stmt] = tree.body
    found: ast.stmt | None = None
    for part in name.split("."):
        named = (n for n in body if isinstance(n, ast.ClassDef | ast.FunctionDef))
        found = next((n for n in named if n.name == part), None)
        body = getattr(found, "body", ())
    return found


def _marked(text: str) -> Iterator[tuple[int, str]]:
    for line, content in enumerate(text.splitlines(), 1):
        marker = _EXPECT.search(content)
        if marker:
            yield from ((line, id) for id in marker["ids"].split(", "))


def _differences(
    found: Counter[tuple[str, int]], due: Counter[tuple[str, int]], matches: list[Match]
) -> Iterator[str]:
    said = {(match.span.file, match.span.line): match.message for match in matches}
    yield from (f"missing at {file}:{line}" for file, line in sorted((due - found).elements()))
    for file, line in sorted((found - due).elements()):
        yield f"not expected at {file}:{line}: {said[file, line]}"
