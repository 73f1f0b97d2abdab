"""Look-ups in a code map, shared by the tests on real releases."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from specmap.codemap.graph import (
    Assignment,
    CallEdge,
    ClassRecord,
    CodeMap,
    Guard,
    Phase,
    Worker,
)
from specmap.codemap.source import Span, file_of, qualname_of

SRT = "sglang/srt/"


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A callee as a fact names it: dotted name, file, line of the definition."""

    qualname: str
    file: str
    line: int


def normal(text: str) -> str:
    """Return source text without the differences that mean nothing to Python.

    An expression or statement is printed by ``ast.unparse``; anything else keeps its words.
    """
    flat = textwrap.dedent(text).strip()
    for wrapped in (f"({flat})", flat):
        try:
            return ast.unparse(ast.parse(wrapped))
        except SyntaxError:
            continue
    return " ".join(flat.split())


def last(dotted: str) -> str:
    """Return the last part of a dotted name or symbol id."""
    return qualname_of(dotted).rpartition(".")[2]


def place(code_map: CodeMap, symbol: str) -> Place:
    """Return name, file and line of a function or class id."""
    spans = {f.id: f.span for f in code_map.functions} | {c.id: c.span for c in code_map.classes}
    if symbol in spans:
        return Place(qualname_of(symbol), file_of(symbol), spans[symbol].line)
    raise AssertionError(f"{symbol} stands in an edge but in no function or class record")


def places(code_map: CodeMap, symbols: Iterable[str]) -> set[Place]:
    """Return the places of several ids."""
    return {place(code_map, symbol) for symbol in symbols}


def class_named(code_map: CodeMap, name: str) -> ClassRecord:
    """Return the one class record with this name."""
    found = [c for c in code_map.classes if c.name == name]
    assert len(found) == 1, f"{name}: {len(found)} class records, must be one"
    return found[0]


def class_by_id(code_map: CodeMap, symbol: str) -> ClassRecord | None:
    """Return the class record with this id."""
    return next((c for c in code_map.classes if c.id == symbol), None)


def worker_named(code_map: CodeMap, name: str) -> Worker:
    """Return the one worker with this class name."""
    found = [w for w in code_map.workers if w.name == name]
    names = sorted(w.name for w in code_map.workers)
    assert len(found) == 1, f"{name}: not one worker of {names}"
    return found[0]


def phase_named(worker: Worker, name: str) -> Phase:
    """Return the one phase of a worker with this name."""
    found = [p for p in worker.phases if p.name == name]
    assert len(found) == 1, f"{worker.name}: {[str(p.name) for p in worker.phases]}, not one {name}"
    return found[0]


def edges_at(code_map: CodeMap, file: str, line: int, caller: str) -> list[CallEdge]:
    """Return the call edges of ``caller`` whose call starts on that line."""
    return [
        edge
        for edge in code_map.edges
        if edge.span.file == file and edge.span.line == line and qualname_of(edge.caller) == caller
    ]


def method_holder(code_map: CodeMap, record: ClassRecord, method: str) -> Place | None:
    """Return the method that a call on an instance of ``record`` reaches."""
    for name in record.mro:
        holder = class_by_id(code_map, name) or next(
            (c for c in code_map.classes if c.name == last(name)), None
        )
        line = dict(holder.methods).get(method) if holder else None
        if holder and line:
            return Place(f"{holder.name}.{method}", holder.span.file, line)
    return None


def has_guard(
    guards: Iterable[Guard],
    text: str,
    line: int,
    branch: bool,
    end_line: int | None = None,
    holder: str | None = None,
) -> bool:
    """Whether one of the guards is this test, on these lines, on this branch."""
    return any(
        normal(guard.text) == normal(text)
        and guard.span.line == line
        and guard.branch is branch
        and (end_line is None or guard.span.end_line == end_line)
        and (holder is None or qualname_of(guard.holder) == holder)
        for guard in guards
    )


def stores(code_map: CodeMap, attribute: str) -> tuple[Assignment, ...]:
    """Return every store to an attribute named ``Class.attribute``."""
    found = [a for a in code_map.attributes if qualname_of(a.name) == attribute]
    return tuple(store for record in found for store in record.assignments)


def near(records: Iterable[object], spans: Iterable[Span], file: str, line: int) -> Iterator[str]:
    """Print the records within four lines of a place, for a failure message."""
    for record, span in zip(records, spans, strict=True):
        if span.file == file and abs(span.line - line) <= 4:
            yield f"  {record}"


def unequal(name: str, expected: object, found: object) -> Iterator[str]:
    """Yield a line when two values differ."""
    if expected != found:
        yield f"{name}: expected {expected!r}, found {found!r}"
