"""The tests of a graph condition as the source joins them, each with what it comes to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from specmap.codemap.condition import (
    All,
    Atom,
    Condition,
    Leaf,
    Not,
    negate,
)
from specmap.codemap.explanation import Clause, Joined, Need
from specmap.codemap.outcome import TermSource, TermValue

# Sources of a value that hold whatever the batch is like.
_SURE = (TermSource.LAUNCH, TermSource.SIZE, TermSource.STATED)

Valued = Callable[[Atom], TermValue]


def clauses(term: Condition, valued: Valued) -> Clause:
    """Return a condition as nested clauses; what decides against it stands first.

    Of alternatives, the one that holds stands first, and what the others assume does not
    matter; where all fail, the one that comes closest stands first.
    """
    return _settled(_clause(term, valued), top=True)


def _clause(term: Condition, valued: Valued) -> Clause:
    if isinstance(term, Leaf):
        value = valued(term.atom)
        return Clause(Joined.TEST, value.value, Need(value, True))
    if isinstance(term, Not):
        if not isinstance(term.term, Leaf):
            return _clause(negate(term.term), valued)
        value = valued(term.term.atom)
        held = None if value.value is None else not value.value
        return Clause(Joined.TEST, held, Need(value, False))
    parts = tuple(_clause(part, valued) for part in term.terms)
    absorbing = not isinstance(term, All)
    results = [part.holds for part in parts]
    settled = absorbing in results
    held = absorbing if settled else None if None in results else not absorbing
    return Clause(Joined.ANY if absorbing else Joined.ALL, held, None, parts)


def _settled(clause: Clause, top: bool = False) -> Clause:
    """Put the parts in order, and mark those that do not matter."""
    if clause.joined is Joined.TEST:
        return clause
    parts = tuple(_settled(part) for part in clause.parts)
    if clause.joined is Joined.ANY and clause.holds:
        first, *others = sorted(parts, key=lambda p: (p.holds is not True, not _sure(p), _place(p)))
        parts = (first, *map(_without, others))
    elif clause.joined is Joined.ANY:
        parts = tuple(sorted(parts, key=lambda p: (_missing(p), _place(p))))
    else:
        parts = tuple(sorted(parts, key=lambda p: (_rank(p), _place(p))))
        if clause.holds is False and not top and any(p.holds is False and _sure(p) for p in parts):
            parts = tuple(p if p.holds is False and _sure(p) else _without(p) for p in parts)
    return replace(clause, parts=parts)


def _sure(clause: Clause) -> bool:
    """Whether the value of a clause rests on nothing that is assumed."""
    if clause.need is not None:
        return clause.need.term.source in _SURE
    # A disjunction is settled by one part that holds, a conjunction by one that fails.
    absorbing = clause.joined is Joined.ANY
    if clause.holds is absorbing:
        return any(part.holds is absorbing and _sure(part) for part in clause.parts)
    return all(_sure(part) for part in clause.parts)


def _without(clause: Clause) -> Clause:
    """Return a clause that does not matter; what the launch settles keeps its value."""
    matters = clause.need is not None and clause.need.term.source is TermSource.LAUNCH
    return replace(clause, matters=matters, parts=tuple(map(_without, clause.parts)))


def _rank(clause: Clause) -> int:
    return 0 if clause.holds is False else 1 if clause.holds is None else 2


def _missing(clause: Clause) -> int:
    """Return how many tests a clause lacks to hold."""
    if clause.holds:
        return 0
    if clause.joined is Joined.TEST:
        return 1
    counts = [_missing(part) for part in clause.parts]
    return min(counts, default=1) if clause.joined is Joined.ANY else sum(counts)


def _place(clause: Clause) -> tuple[str, int]:
    """Return where a clause begins in the source; what is outside the tree stands first."""
    if clause.need is not None:
        span = clause.need.term.span
        return (span.file, span.line) if span is not None else ("", 0)
    return min(map(_place, clause.parts), default=("", 0))
