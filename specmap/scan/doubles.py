"""Passes whose graph decision is taken at two places, and how the two differ."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations

from specmap.codemap.graph import DoubleDecision
from specmap.codemap.verdict import PhaseName
from specmap.scan.asked import Asked, Asking


def double_decisions(worker: str, asked: Iterable[Asked]) -> Iterator[DoubleDecision]:
    """Yield the pairs of routes in one phase that ask the same runner object.

    The differing terms are those that only one of the two holds; how a term's object is
    reached does not matter.
    """
    every = list(asked)
    for phase in PhaseName:
        here = [(a.phases[phase], a.decision) for a in every if phase in a.phases]
        here.sort(key=lambda pair: (pair[0].order, pair[1].id))
        for (one, first), (other, second) in combinations(here, 2):
            if one.runners & other.runners:
                yield DoubleDecision(
                    worker, phase, first.span, second.span, _only(one, other), _only(other, one)
                )


def _only(one: Asking, other: Asking) -> tuple[str, ...]:
    return tuple(text for subject, text in one.subjects.items() if subject not in other.subjects)
