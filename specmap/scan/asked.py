"""The decisions on one worker's walks: in which phases they are taken and whom they ask."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from specmap.codemap.graph import Decision
from specmap.codemap.verdict import PhaseName
from specmap.scan.decisions import Decisions, Route
from specmap.scan.met import Ahead, Met, functions_of
from specmap.scan.module import last_name
from specmap.scan.nodes import nodes_in
from specmap.scan.phases import Phases, is_idle
from specmap.scan.resolver import Resolver
from specmap.scan.values import Instance, Scope
from specmap.scan.walk import Walk


@dataclass(frozen=True, slots=True)
class Asking:
    """A route as one phase takes it: the runner objects that it asks, what each of its terms
    tests (by text), and which of two routes comes first."""

    runners: frozenset[Instance]
    subjects: Mapping[str, str]
    order: tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Asked:
    """A decision with the phases in which it is taken."""

    decision: Decision
    phases: Mapping[PhaseName, Asking]


class AskedFinder:
    """Collects the decisions of one worker after another."""

    def __init__(self, resolver: Resolver, decisions: Decisions) -> None:
        self._resolver = resolver
        self._decisions = decisions
        self._names = resolver.vocabulary.decisions

    def find(self, walks: Iterable[Walk], phases: Phases) -> list[Asked]:
        """Return the runners' own tests and the routes on these walks, idle ones left out."""
        found: dict[str, Asked] = {}
        for walk in walks:
            if is_idle(walk):
                continue
            ahead = Ahead(self._resolver, walk, phases)
            for met in functions_of(walk):
                if self._names.isdisjoint(met.function.words):
                    continue
                for asked in self._in(met, ahead):
                    before = found.get(asked.decision.id)
                    found[asked.decision.id] = asked if before is None else _joined(before, asked)
        return list(found.values())

    def _in(self, met: Met, ahead: Ahead) -> Iterator[Asked]:
        function = met.function
        if function.name in self._names and function.owner is not None:
            start, _ = met.span
            where = ahead.phases_at(met, function.span.end_line, start)
            nobody = Asking(frozenset(), {}, (start, 0, 0))
            yield Asked(self._decisions.can_run(function), dict.fromkeys(where, nobody))
            return
        routes = {id(route.node): route for route in self._decisions.routes(function)}
        for seen in met.activation.seen if routes else ():
            route = routes.get(id(seen.node))
            if route is not None:
                passes = met.passes_at(seen.passes)
                span = route.decision.span
                asking = Asking(
                    self._runners(route, seen.scope),
                    self._decisions.subjects(route.node, seen.scope),
                    (passes, 0 if met.passes is not None else 1, span.line),
                )
                where = ahead.phases_at(met, span.end_line, passes)
                yield Asked(route.decision, dict.fromkeys(where, asking))

    def _runners(self, route: Route, scope: Scope) -> frozenset[Instance]:
        found = set()
        for call in nodes_in(route.node):
            if not (isinstance(call, ast.Call) and last_name(call.func) in self._names):
                continue
            if isinstance(call.func, ast.Attribute):
                for arm in self._resolver.evaluate(call.func.value, scope):
                    if isinstance(arm.value, Instance) and self._decides(arm.value):
                        found.add(arm.value)
        return frozenset(found)

    def _decides(self, runner: Instance) -> bool:
        """Whether a runner has a test that is more than a constant answer."""
        methods = (self._resolver.types.method(runner.cls, name) for name in self._names)
        return any(method and self._decisions.can_run(method).terms for method in methods)


def _joined(first: Asked, second: Asked) -> Asked:
    phases = dict(first.phases)
    for phase, asking in second.phases.items():
        before = phases.get(phase, asking)
        phases[phase] = replace(
            before,
            runners=before.runners | asking.runners,
            order=min(before.order, asking.order),
        )
    return replace(first, phases=phases)
