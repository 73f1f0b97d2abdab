"""Passes whose graph decision is taken at two places, and how the two differ."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from specmap.codemap.graph import Decision, DoubleDecision, Worker


def double_decisions(
    workers: Iterable[Worker], decisions: Mapping[str, Decision]
) -> tuple[DoubleDecision, ...]:
    """Return the phases with two routes that ask the same runner.

    The terms are compared by text, without the words that only say how the runner is
    reached.
    """
    found = []
    for worker in workers:
        for phase in worker.phases:
            routes = [decisions[d] for d in phase.decisions if decisions[d].kind == "route"]
            routes = [r for r in routes if any(_asks(t.text) for t in r.terms)]
            for first, second in zip(routes, routes[1:], strict=False):
                one = {_short(t.text) for t in first.terms if not t.conjunct_of == "" or True}
                two = {_short(t.text) for t in second.terms}
                found.append(
                    DoubleDecision(
                        worker.id, phase.name, first.span, second.span,
                        tuple(sorted(one - two)), tuple(sorted(two - one)),
                    )
                )
    return tuple(found)


def _asks(text: str) -> bool:
    return "(" in text


def _short(text: str) -> str:
    """The last attribute of a dotted chain: how the object is reached does not matter."""
    head, bracket, tail = text.partition("(")
    return f"{head.rpartition('.')[2]}{bracket}{tail}"
