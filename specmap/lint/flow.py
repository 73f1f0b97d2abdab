"""How a server gets to a place: the calls from the scheduler to the function that holds it."""

from __future__ import annotations

from collections import deque

from specmap.codemap.finding import Match, Step
from specmap.codemap.graph import CallEdge, CodeMap
from specmap.codemap.source import qualname_of


class FlowFinder:
    """Finds shortest call chains in one map; a worker's chains are searched once."""

    def __init__(self, codemap: CodeMap) -> None:
        self._calls: dict[str, list[CallEdge]] = {}
        for edge in codemap.edges:
            self._calls.setdefault(edge.caller, []).append(edge)
        self._entries = {
            worker.id: f"{worker.entry.holder}.{worker.entry.name}"
            for worker in codemap.workers
            if worker.entry is not None
        }
        self._reached: dict[str, dict[str, CallEdge]] = {}
        self._first: dict[str, tuple[Step, ...]] = {}

    def to(self, match: Match) -> tuple[Step, ...]:
        """Return the calls to a match from the first of its workers that leads there.

        Nothing where no chain of resolved calls leads there.
        """
        for worker in match.workers or self._entries:
            entry = self._entries.get(worker)
            if entry is None:
                continue
            if match.holder == entry:
                return self._from_scheduler(entry)
            chain = self._chain(entry, match.holder)
            if chain:
                return (*self._from_scheduler(entry), *map(_step, chain))
        return ()

    def _from_scheduler(self, entry: str) -> tuple[Step, ...]:
        """Return the scheduler's call: one into the entry from a caller that no worker is."""
        if entry not in self._first:
            own = set(self._entries.values())
            calls = (e for edges in self._calls.values() for e in edges if entry in e.callees)
            outside = [edge for edge in calls if edge.caller not in own]
            first = min(outside, key=lambda edge: (edge.span, edge.caller), default=None)
            self._first[entry] = () if first is None else (_step(first),)
        return self._first[entry]

    def _chain(self, entry: str, holder: str) -> list[CallEdge]:
        reached = self._reached.get(entry)
        if reached is None:
            reached = self._reached[entry] = self._search(entry)
        chain: list[CallEdge] = []
        place = holder
        while place in reached:
            edge = reached[place]
            chain.append(edge)
            place = edge.caller
            if place == entry:
                return chain[::-1]
        return []

    def _search(self, entry: str) -> dict[str, CallEdge]:
        """Return the call by which each function is first reached, nearest first."""
        reached: dict[str, CallEdge] = {}
        waiting = deque([entry])
        while waiting:
            for edge in self._calls.get(waiting.popleft(), ()):
                for callee in edge.callees:
                    if callee != entry and callee not in reached:
                        reached[callee] = edge
                        waiting.append(callee)
        return reached


def _step(edge: CallEdge) -> Step:
    return Step(edge.span, f"{qualname_of(edge.caller)} calls {edge.text}")
