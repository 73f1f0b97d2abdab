"""Copies of an installed SGLang with patches in each; standard library only.

A copy costs no disk: what a patch leaves alone is a hard link. ``jit_kernel`` stays where it is,
behind a symbolic link: kernels compiled for the installed SGLang are found by its path.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

FILE = re.compile(r"^--- (\S+).*\n\+\+\+ (\S+).*\n", re.MULTILINE)
HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+\d+(?:,(\d+))? @@")
PACKAGE = "sglang"
IN_PLACE = "jit_kernel"


@dataclass(frozen=True, slots=True)
class Hunk:
    """Lines that are replaced: where they begin in the old file, counted from 0."""

    start: int
    old: tuple[str, ...]
    new: tuple[str, ...]


class PatchError(ValueError):
    """A patch does not fit; the message says where."""


def changes_in(patch: str) -> Iterator[tuple[str, list[Hunk]]]:
    """Yield the hunks of every file of a unified diff, with the path from ``sglang/`` on.

    Raises:
        PatchError: it removes a file, or names one that is not SGLang's.
    """
    marks = list(FILE.finditer(patch))
    for mark, following in zip(marks, [*marks[1:], None], strict=True):
        path = mark[2].partition("/")[2].removeprefix("python/")
        if not path.startswith(f"{PACKAGE}/"):
            raise PatchError(f"{mark[2]}: only changed and new files of {PACKAGE}/ are known here")
        body = patch[mark.end() : following.start() if following else None].split("\n")
        yield path, list(_hunks(body))


def _hunks(body: Sequence[str]) -> Iterator[Hunk]:
    at = 0
    while at < len(body):
        head = HUNK.match(body[at])
        at += 1
        if head is None:
            continue
        wanted = [int(count or 1) for count in (head[2], head[3])]
        old: list[str] = []
        new: list[str] = []
        while [len(old), len(new)] != wanted:
            mark, line = body[at][:1] or " ", body[at][1:]
            at += 1
            if mark in " -":
                old.append(line)
            if mark in " +":
                new.append(line)
        yield Hunk(max(int(head[1]) - 1, 0), tuple(old), tuple(new))


def changed(text: str, hunks: Sequence[Hunk]) -> str:
    """Return a file's text after a change.

    Raises:
        PatchError: the old lines are not where the patch says.
    """
    lines, moved = text.split("\n"), 0
    for hunk in hunks:
        at = hunk.start + moved
        if tuple(lines[at : at + len(hunk.old)]) != hunk.old:
            raise PatchError(f"line {hunk.start + 1}: the patch does not fit")
        lines[at : at + len(hunk.old)] = hunk.new
        moved += len(hunk.new) - len(hunk.old)
    return "\n".join(lines)


def copy_tree(site: Path, folder: Path, patches: Sequence[Path]) -> Path:
    """Make ``folder``/sglang from ``site``/sglang with the patches applied in turn.

    Raises:
        PatchError: one of them does not fit.
    """
    tree = folder / PACKAGE
    shutil.rmtree(tree, ignore_errors=True)
    skipped = shutil.ignore_patterns(IN_PLACE)
    shutil.copytree(site / PACKAGE, tree, copy_function=_link, ignore=skipped)
    if (site / PACKAGE / IN_PLACE).exists():
        (tree / IN_PLACE).symlink_to(site / PACKAGE / IN_PLACE)
    for patch in patches:
        for path, hunks in changes_in(patch.read_text("utf-8")):
            place = folder / path
            before = place.read_text("utf-8") if place.exists() else ""
            try:
                after = changed(before, hunks)
            except PatchError as error:
                raise PatchError(f"{patch.name}: {path}, {error}") from None
            place.unlink(missing_ok=True)  # else the installed file would change, too
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(after, "utf-8")
    return folder


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # another file system
        shutil.copy2(source, target)
