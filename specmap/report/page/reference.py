"""The reference for the page's explorer: verdicts of a page's data under given truths.

The page evaluates the same terms in TypeScript; tests compare the two on random settings. The
steps are those of :mod:`specmap.verdicts`, which judges launches on the command line.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from specmap.codemap.condition import All, AnyOf, Atom, AtomKind, Condition, Leaf, negate
from specmap.codemap.source import Span
from specmap.codemap.verdict import Verdict
from specmap.report.page.tables import Json
from specmap.verdicts.settling import ended, residual, settled

Truths = Sequence[bool | None]
"""By atom number of a side; None: not known."""


class Reference:
    """Evaluates one side of a page's data."""

    def __init__(self, side: Mapping[str, Any]) -> None:
        self._side = side
        self._atoms = [_atom(item, number) for number, item in enumerate(side["atoms"])]
        self._terms: list[Condition] = []
        for term in side["terms"]:
            self._terms.append(self._term(term))

    def verdict(self, worker: int, phase: int, truths: Truths) -> Verdict:
        """Return the verdict of a phase if its tests had these truths."""
        item = self._side["workers"][worker]["phases"][phase]
        if item["ends"] is None:
            return Verdict(item["verdict"])

        def value(atom: Atom) -> bool | None:
            return truths[_number(atom)]

        ends = {
            kind: settled(residual(self._terms[number], value))
            for kind, number in item["ends"].items()
        }
        return ended(ends["graph"], ends["piecewise"], ends["eager"])

    def verdicts(self, truths: Truths) -> list[list[str]]:
        """Return the verdicts of all phases of all workers."""
        return [
            [self.verdict(w, p, truths).value for p in range(len(worker["phases"]))]
            for w, worker in enumerate(self._side["workers"])
        ]

    def _term(self, term: Any) -> Condition:
        if isinstance(term, int):
            return Leaf(self._atoms[term])
        word, *numbers = term
        inner = tuple(self._terms[number] for number in numbers)
        if word == "not":
            return negate(*inner)
        return All(inner) if word == "and" else AnyOf(inner)


def _atom(item: Json, number: int) -> Atom:
    """Return an atom that is equal to those of the same test, and knows its own number."""
    return Atom(item["text"], AtomKind(item["kind"]), Span("", number, number))


def _number(atom: Atom) -> int:
    assert atom.span is not None
    return atom.span.line


def vectors(side: Mapping[str, Any], seed: int, count: int) -> Iterator[Json]:
    """Yield truths of all atoms with the verdicts that they give.

    All are random; in every other one the tests of one way out of one phase hold, because
    chance alone hardly ever meets the condition of a graph.
    """
    made, reference = random.Random(seed), Reference(side)
    arms = [a for w in side["workers"] for p in w["phases"] for a in p["arms"]]
    for index in range(count):
        known, true = made.choice((0.3, 0.6, 0.9, 1.0)), made.random()
        truths = [made.random() < true if made.random() < known else None for _ in side["atoms"]]
        if index % 2 and arms:
            aimed = _aim(side["terms"], made.choice(arms)["when"], {}, made)
            for number, truth in (aimed or {}).items():
                truths[number] = truth
        yield {"truths": truths, "expected": reference.verdicts(truths)}


def _aim(
    terms: Sequence[Any], number: int, fixed: dict[int, bool], made: random.Random
) -> dict[int, bool] | None:
    """Return truths, those fixed among them, under which a condition holds; None: not found.

    Of each choice the first alternative, in random order, that agrees with what is fixed is taken.
    """
    term = terms[number]
    if isinstance(term, int):
        return fixed | {term: True} if fixed.get(term, True) else None
    word, *below = term
    if word == "not":
        atom = terms[below[0]]
        return None if fixed.get(atom) else fixed | {atom: False}
    if word == "or":
        ways = (_aim(terms, inner, fixed, made) for inner in made.sample(below, len(below)))
        return next((way for way in ways if way is not None), None)
    found: dict[int, bool] | None = fixed
    for inner in below:
        found = found if found is None else _aim(terms, inner, found, made)
    return found
