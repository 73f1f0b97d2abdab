"""A map whose source moved: comments and blank lines came or went, the code is the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, cast

from specmap.codemap.condition import All, AnyOf, Leaf, Not
from specmap.codemap.graph import (
    Arm,
    Assignment,
    CallEdge,
    ClassRecord,
    CodeMap,
    Decision,
    Flag,
    Phase,
    Problem,
    Sink,
)
from specmap.codemap.hazards import ModeTest
from specmap.codemap.source import SourceFile, Span, file_of
from specmap.scan.excerpts import annotate
from specmap.scan.index import Tree


class ApartError(Exception):
    """The map names a line whose new number is not known for sure."""


def moved(codemap: CodeMap, file: str, lines: Mapping[int, int], tree: Tree) -> CodeMap:
    """Return the map with the new line numbers of one file, and its comments read anew.

    Raises:
        ApartError: a line of the map has no new number.
    """
    found = _Mover(codemap, file, lines).value(codemap)
    assert isinstance(found, CodeMap)
    problems = tuple(p for p in found.problems if p.file != file or p.partial)
    own = tuple(replace(e, comment="") for e in found.edges if e.span.file == file)
    there = tuple(f for f in found.functions if f.span.file == file)
    read = annotate(replace(found, edges=own, functions=there, problems=()), tree)
    fresh = iter(read.edges)
    edges = tuple(next(fresh) if e.span.file == file else e for e in found.edges)
    return replace(found, edges=edges, problems=(*problems, *read.problems))


class _Mover:
    """Rebuilds what names a line of the file; everything else stays the same object."""

    def __init__(self, codemap: CodeMap, file: str, lines: Mapping[int, int]) -> None:
        self._file = file
        self._lines = lines
        self._spans = {f.id: f.span for f in codemap.functions}
        self._calls: dict[str, list[CallEdge]] = {}
        for edge in codemap.edges:
            self._calls.setdefault(edge.caller, []).append(edge)
        self._seen: dict[int, Any] = {}
        self._kept: list[Any] = []

    def value(self, old: Any) -> Any:
        """Return a value of the model with its lines renumbered."""
        kind = type(old)
        if kind in (str, int, bool, type(None)):
            return old
        known = self._seen.get(id(old))
        if known is None:
            known = self._seen[id(old)] = self._rebuilt(old, kind)
            self._kept.append(old)
        return known

    def _rebuilt(self, old: Any, kind: type[Any]) -> Any:
        if kind is Span:
            return self._span(old)
        if kind is tuple:
            items = tuple(map(self.value, old))
            return items if any(a is not b for a, b in zip(items, old, strict=True)) else old
        if kind in (Not, Leaf, All, AnyOf):
            (name,) = kind.__match_args__
            inner = self.value(getattr(old, name))
            return old if inner is getattr(old, name) else kind(inner)
        if not is_dataclass(old) or kind is SourceFile:
            return old
        changed = self._numbers(old)
        for field in fields(old):
            if field.name not in changed:
                was = getattr(old, field.name)
                now = self.value(was)
                if now is not was:
                    changed[field.name] = now
        return replace(cast(Any, old), **changed) if changed else old

    def _span(self, span: Span) -> Span:
        if span.file != self._file:
            return span
        return Span(span.file, self._line(span.line), self._line(span.end_line))

    def _line(self, line: int) -> int:
        if line not in self._lines:
            raise ApartError(f"{self._file}:{line}")
        return self._lines[line]

    def _numbers(self, old: Any) -> dict[str, Any]:
        """Return the fields that hold bare line numbers, or ids that end with one."""
        if isinstance(old, Arm):
            chain = tuple(
                (s, self._line(n) if file_of(s) == self._file else n) for s, n in old.chain
            )
            return {"chain": chain, "sink": self._id(old.sink)}
        if isinstance(old, Phase):
            return {"decisions": tuple(map(self._id, old.decisions))}
        if isinstance(old, Decision | Sink):
            return {"id": self._id(old.id)}
        if isinstance(old, Flag):
            return self._flag(old)
        here = getattr(getattr(old, "span", None), "file", getattr(old, "file", "")) == self._file
        if not here:
            return {}
        if isinstance(old, ModeTest):
            return {"chain": self._line(old.chain)}
        if isinstance(old, Assignment):
            return {"restored_line": self._maybe(old.restored_line)}
        if isinstance(old, ClassRecord):
            methods = tuple((name, self._line(line)) for name, line in old.methods)
            delegates = self._maybe(old.getattr_delegates_line)
            return {"methods": methods, "getattr_delegates_line": delegates}
        if isinstance(old, Problem):
            return {"line": self._maybe(old.line)}
        return {}

    def _maybe(self, line: int | None) -> int | None:
        return None if line is None else self._line(line)

    def _id(self, symbol: str) -> str:
        """``file::Function:line``; the ids are sorted as text, so a new length is refused."""
        head, _, line = symbol.rpartition(":")
        if file_of(symbol) != self._file or not line.isdigit():
            return symbol
        number = str(self._line(int(line)))
        if len(number) != len(line):
            raise ApartError(symbol)
        return f"{head}:{number}"

    def _flag(self, flag: Flag) -> dict[str, Any]:
        """A chain may go on in a callee, which may stand in another file."""
        chain = flag.source_chain or tuple(n for n in (flag.source_line,) if n is not None)
        new = {line: self._in_chain(flag.holder, chain[:i], line) for i, line in enumerate(chain)}
        if flag.source_line is not None and flag.source_line not in new:
            raise ApartError(f"{flag.holder}: line {flag.source_line}")
        found: dict[str, Any] = {
            "source_line": None if flag.source_line is None else new[flag.source_line],
            "source_chain": tuple(new[line] for line in flag.source_chain),
        }
        if file_of(flag.holder) == self._file:
            found["result_line"] = self._maybe(flag.result_line)
            found["result_source_line"] = self._maybe(flag.result_source_line)
        return found

    def _in_chain(self, holder: str, before: Sequence[int], line: int) -> int:
        """Return the new number of a line: of the holder, or of what it called on the way."""
        near = [holder]
        for function in near:
            calls = (e for e in self._calls.get(function, ()) if e.span.line in before)
            near += [c for e in calls for c in e.callees if c not in near]
        spans = [self._spans[f] for f in near if f in self._spans]
        files = {s.file for s in spans if s.line <= line <= s.end_line}
        if len(files) != 1:
            raise ApartError(f"{holder}: line {line}")
        return self._line(line) if files == {self._file} else line
