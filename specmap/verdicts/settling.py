"""Whether a condition holds, and which of its tests decide that."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import reduce
from operator import and_, or_

from specmap.codemap.condition import (
    FALSE,
    TRUE,
    All,
    AnyOf,
    Atom,
    Condition,
    Leaf,
    Not,
    atoms_of,
    evaluate,
    simplify,
    substitute,
)
from specmap.codemap.verdict import Verdict

Value = Callable[[Atom], bool | None]
Rank = Callable[[Atom], int]

# As many tests as ``simplify`` gives to boolean.py.
_TRIED = 8


def residual(term: Condition, value: Value) -> Condition:
    """Return what is left of a condition when the known tests are filled in."""

    def constant(atom: Atom) -> Condition | None:
        held = value(atom)
        return None if held is None else TRUE if held else FALSE

    return simplify(substitute(term, constant))


def settled(term: Condition) -> bool | None:
    """Return the truth of a residual condition, or None.

    Over few tests every setting is tried, because simplifying misses some that always hold.
    """
    known = evaluate(term, {})
    atoms = list(dict.fromkeys(atoms_of(term))) if known is None else []
    if not 2 <= len(atoms) <= _TRIED:
        return known
    rows = (1 << (1 << len(atoms))) - 1
    columns = {atom: _column(place, len(atoms)) for place, atom in enumerate(atoms)}
    held = _rows(term, columns, rows)
    return True if held == rows else False if held == 0 else None


def ended(graph: bool | None, piecewise: bool | None, eager: bool | None) -> Verdict:
    """Return the verdict of a phase from the truths of its three ends.

    Ends exclude each other: two at once mean that the map cannot tell.
    """
    if graph is None or piecewise is None or eager is None or graph + piecewise + eager > 1:
        return Verdict.UNKNOWN
    if graph:
        return Verdict.GRAPH
    if piecewise:
        return Verdict.PIECEWISE
    return Verdict.EAGER if eager else Verdict.NOT_RUN


def _column(place: int, count: int) -> int:
    """Return the settings in which a test holds, one bit for each of all settings."""
    return sum(1 << row for row in range(1 << count) if row >> place & 1)


def _rows(term: Condition, columns: Mapping[Atom, int], rows: int) -> int:
    if isinstance(term, Leaf):
        return columns[term.atom]
    if isinstance(term, Not):
        return rows ^ _rows(term.term, columns, rows)
    held = [_rows(inner, columns, rows) for inner in term.terms]
    return reduce(and_, held, rows) if isinstance(term, All) else reduce(or_, held, 0)


def deciding(term: Condition, value: Value, rank: Rank) -> tuple[Atom, ...]:
    """Return the tests that settle a condition, the ones that decide first first.

    Of several reasons the one of the lowest rank is given: what the launch settles stands
    before what a batch does.
    """
    found = _Search(value, rank).of(term)
    return tuple(dict.fromkeys(found)) if found is not None else ()


class _Search:
    def __init__(self, value: Value, rank: Rank) -> None:
        self.value = value
        self.rank = rank
        self._truths: dict[int, tuple[Condition, bool | None]] = {}

    def truth(self, term: Condition) -> bool | None:
        known = self._truths.get(id(term))
        if known is None:
            known = self._truths[id(term)] = (term, self._truth(term))
        return known[1]

    def _truth(self, term: Condition) -> bool | None:
        if isinstance(term, Leaf):
            return self.value(term.atom)
        if isinstance(term, Not):
            inner = self.truth(term.term)
            return None if inner is None else not inner
        absorbing = isinstance(term, AnyOf)
        results = [self.truth(t) for t in term.terms]
        if absorbing in results:
            return absorbing
        return None if None in results else not absorbing

    def of(self, term: Condition) -> tuple[Atom, ...] | None:
        """Return the tests that settle a term, or None where it is not settled."""
        truth = self.truth(term)
        if truth is None:
            return None
        if isinstance(term, Leaf):
            return (term.atom,)
        if isinstance(term, Not):
            return self.of(term.term)
        options = [self.of(t) for t in term.terms if self.truth(t) is truth]
        found = [option for option in options if option is not None]
        if truth is isinstance(term, AnyOf):
            return min(found, key=self._cost, default=())
        return self._closest(term, found)

    def _cost(self, atoms: tuple[Atom, ...]) -> tuple[int, int]:
        return max(map(self.rank, atoms), default=0), len(atoms)

    def _closest(self, term: All | AnyOf, found: list[tuple[Atom, ...]]) -> tuple[Atom, ...]:
        """Of a disjunction that fails, say why those alternatives fail that come closest."""
        if isinstance(term, All):
            return tuple(atom for atoms in found for atom in atoms)
        missing = [self._missing(t) for t in term.terms]
        least = min(missing, default=0)
        near = zip(found, missing, strict=True)
        return tuple(atom for atoms, count in near if count == least for atom in atoms)

    def _missing(self, term: Condition) -> int:
        """Return how many conjuncts of a failing alternative fail."""
        if not isinstance(term, All):
            return 1
        return sum(self._missing(t) for t in term.terms if self.truth(t) is not True)


def open_atoms(term: Condition) -> Iterator[Atom]:
    """Yield the tests of a residual condition, each once."""
    yield from dict.fromkeys(atoms_of(term))
