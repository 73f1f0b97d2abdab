"""What a walk met, in order: its own functions and those of subtrees it shares."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from specmap.codemap.verdict import PhaseName
from specmap.scan.module import FunctionInfo
from specmap.scan.phases import Phases
from specmap.scan.resolver import Resolver
from specmap.scan.values import Value
from specmap.scan.walk import Walk
from specmap.scan.walked import Activation, Hop, Subtree

_Place = tuple[FunctionInfo, Value | None]


@dataclass(slots=True, eq=False)
class _Way:
    """How a walk comes to shared code: the chain of the use, seen from the use around it."""

    hops: tuple[Hop, ...]
    skipped: int = 0
    outer: _Way | None = None

    def chain(self) -> tuple[Hop, ...]:
        """Return the whole chain from the walk's entry."""
        return self.hops if self.outer is None else self.outer.chain() + self.hops[self.skipped :]


@dataclass(slots=True, eq=False)
class Met:
    """A function on a walk, with the chain that leads to it here.

    ``passes`` counts the sinks before it where the function is shared by walks; ``None``
    means that its own expressions know.
    """

    activation: Activation
    way: _Way
    passes: int | None = None

    @property
    def chain(self) -> tuple[Hop, ...]:
        """The calls that lead to the function."""
        return self.way.chain()

    @property
    def function(self) -> FunctionInfo:
        """The function."""
        return self.activation.function

    def passes_at(self, own: int) -> int:
        """Return how many sinks were met before an expression of the function."""
        return own if self.passes is None else self.passes

    @property
    def span(self) -> tuple[int, int]:
        """The sinks met before and after the whole function."""
        if self.passes is None:
            return self.activation.passes
        return self.passes, self.passes


def functions_of(walk: Walk) -> Iterator[Met]:
    """Yield what a walk went through; shared code once for each place it is used at.

    Code deep inside shared code is told apart by its position among the passes only.
    """
    for activation in walk.activations:
        yield Met(activation, _Way(activation.chain))
    seen: set[tuple[Subtree, int, ast.Call | None]] = set()
    pending = [(use.subtree, use.passes, use.chain[-1].node, _Way(use.chain)) for use in walk.used]
    pending.reverse()
    deep: list[tuple[Subtree, int, None, _Way]] = []
    while pending or deep:
        subtree, passes, node, way = deep.pop() if deep else pending.pop()
        key = (subtree, passes, node)
        if key in seen:
            continue
        seen.add(key)
        depth = len(subtree.activations[0].chain)
        for activation in subtree.activations:
            yield Met(activation, _Way(activation.chain, depth, way), passes)
        for inner in reversed(subtree.inner):
            if (inner.subtree, passes, None) not in seen:
                deep.append((inner.subtree, passes, None, _Way(inner.chain, depth, way)))


class Ahead:
    """Tells which phase a place in the code stands before, by the passes of one walk."""

    def __init__(self, resolver: Resolver, walk: Walk, phases: Phases) -> None:
        self._walk = walk
        self._phases = phases
        self._runners = resolver.vocabulary.model_runner
        self._lines: dict[_Place, list[tuple[int, PhaseName]]] = defaultdict(list)
        for hit in walk.hits:
            name = phases.name_of(hit)
            if name is not None:
                for hop in hit.chain:
                    place = (hop.function, hop.frame.self_value)
                    self._lines[place].append((hop.node.lineno, name))

    def phases_at(self, met: Met, line: int, passes: int) -> frozenset[PhaseName]:
        """Return the phases of the next pass after a line of a function.

        Where the function starts no pass itself, the nearest caller that does tells.
        """
        places = [((met.function, met.activation.frame.self_value), line)]
        for hop in reversed(met.chain):
            places.append(((hop.function, hop.frame.self_value), hop.node.lineno))
        for place, at in places:
            later = [(n, phase) for n, phase in self._lines.get(place, ()) if n >= at]
            if not later:
                continue
            function = place[0]
            if function.owner is not None and function.owner.name in self._runners:
                return frozenset(phase for _, phase in later)
            first = min(n for n, _ in later)
            return frozenset(phase for n, phase in later if n == first)
        behind = self._walk.hits[passes : passes + 1] or self._walk.hits[-1:]
        names = (self._phases.name_of(hit) for hit in behind)
        return frozenset(name for name in names if name is not None)
