"""Conditions of values that may be ``None``: the asking test tells whether they are."""

from __future__ import annotations

from specmap.codemap.condition import (
    All,
    Atom,
    AtomKind,
    Condition,
    Leaf,
    Not,
    all_of,
    any_of,
    is_marked,
    negate,
)

# "An Optional annotation allows None here": stands in a condition until the test that asks
# for it replaces it by its own text.
_ABSENT = Atom("?absent", AtomKind.UNKNOWN)


def is_there() -> Condition:
    """Return "this is not empty": what the asking test tells, and nothing else does."""
    return Not(Leaf(_ABSENT))


def settle_absence(condition: Condition, absent: Condition) -> Condition:
    """Replace "may be absent" by the condition that the asking test stands for."""
    if not is_marked(condition):
        return condition
    if isinstance(condition, Leaf):
        return absent if condition.atom is _ABSENT else condition
    if isinstance(condition, Not):
        return negate(settle_absence(condition.term, absent))
    inner = tuple(settle_absence(term, absent) for term in condition.terms)
    return all_of(*inner) if isinstance(condition, All) else any_of(*inner)
