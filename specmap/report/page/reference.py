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
            _aim(side["terms"], made.choice(arms)["when"], truths, made)
        yield {"truths": truths, "expected": reference.verdicts(truths)}


def _aim(terms: Sequence[Any], number: int, truths: list[bool | None], made: random.Random) -> None:
    """Make a condition hold, one random alternative of each choice."""
    term = terms[number]
    if isinstance(term, int):
        truths[term] = True
    elif term[0] == "not":
        truths[terms[term[1]]] = False
    else:
        below = term[1:] if term[0] == "and" else [made.choice(term[1:])] if term[1:] else []
        for inner in below:
            _aim(terms, inner, truths, made)
