"""Where the source of a change differs from its base, and in which function."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher

from specmap.codemap.source import Span, lines_of
from specmap.compare.asked import ReadText


@dataclass(frozen=True, slots=True)
class Hunk:
    """Neighbouring lines that changed, in the new tree; for lines that went, the one after them.

    ``qualname`` is the dotted name of the function or class around them, "" outside of any.
    """

    span: Span
    qualname: str
    text: str

    def overlaps(self, other: Span) -> bool:
        """Tell whether a span shares a line with this one."""
        own = self.span
        return own.file == other.file and own.line <= other.end_line and other.line <= own.end_line


def hunks(files: Iterable[str], old: ReadText, new: ReadText) -> list[Hunk]:
    """Return what differs in ``files``, by place; blank lines and comments do not count."""
    found: list[Hunk] = []
    for file in sorted(set(files)):
        now = new(file)
        before = old(file)
        if now is not None and now != before:
            holders = _holders(now)
            lines = lines_of(now)
            for first, last in _differences(before or "", now):
                text = " ".join(lines[first - 1].split()) if first <= len(lines) else ""
                span = Span(file, first, last)
                found.append(Hunk(span, _around(holders, first), text))
    return found


def _differences(before: str, now: str) -> Iterator[tuple[int, int]]:
    """Yield first and last line of each difference in the new text, counted from 1."""
    old, new = _code(before), _code(now)
    matcher = SequenceMatcher(None, [t for _, t in old], [t for _, t in new], autojunk=False)
    for tag, _, _, start, end in matcher.get_opcodes():
        if tag != "equal" and new:
            first = new[min(start, len(new) - 1)][0]
            yield first, new[end - 1][0] if end > start else first


def _code(text: str) -> list[tuple[int, str]]:
    lines = enumerate(lines_of(text), start=1)
    return [(n, t.rstrip()) for n, t in lines if t.strip() and not t.lstrip().startswith("#")]


def _holders(text: str) -> list[tuple[int, int, str]]:
    """Return first line, last line and dotted name of every function and class."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return []
    found: list[tuple[int, int, str]] = []

    def visit(node: ast.AST, outer: str) -> None:
        for child in ast.iter_child_nodes(node):
            name = outer
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                name = f"{outer}.{child.name}" if outer else child.name
                first = min([child.lineno, *(d.lineno for d in child.decorator_list)])
                found.append((first, child.end_lineno or first, name))
            visit(child, name)

    visit(tree, "")
    return found


def _around(holders: list[tuple[int, int, str]], line: int) -> str:
    inside = [(first, name) for first, last, name in holders if first <= line <= last]
    return max(inside)[1] if inside else ""
