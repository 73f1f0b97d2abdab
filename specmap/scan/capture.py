"""What graph runners capture: their capture methods, walked like a phase."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from specmap.codemap.graph import Decision
from specmap.codemap.source import Span
from specmap.codemap.verdict import PhaseName
from specmap.scan.decisions import Decisions
from specmap.scan.met import Met, functions_of
from specmap.scan.module import ClassInfo, FunctionInfo
from specmap.scan.phases import Phases
from specmap.scan.resolver import Resolver
from specmap.scan.syncs import FoundSync, SyncFinder
from specmap.scan.values import Instance
from specmap.scan.walk import Walk
from specmap.scan.walked import Activation, Notes


class CaptureWalks:
    """Walks the capture methods of every runner, once for each class of owner."""

    def __init__(self, resolver: Resolver, notes: Notes) -> None:
        self._resolver = resolver
        self._notes = notes
        self._runners: dict[Instance, list[Instance]] = {}
        self._done: set[tuple[ClassInfo, ClassInfo | None]] = set()
        self.walks: list[Walk] = []
        self.captured: dict[FunctionInfo, Span] = {}

    def add(self, instance: Instance, decisions: Decisions) -> None:
        """Walk the runners that an object holds."""
        for runner in self.runners(instance, decisions):
            key = (runner.cls, runner.owner.cls if runner.owner else None)
            if key in self._done:
                continue
            self._done.add(key)
            for name in sorted(self._resolver.vocabulary.capture_methods):
                method = self._resolver.types.method(runner.cls, name)
                if method is not None:
                    self._walk(runner, method)
                    break

    def runners(self, instance: Instance, decisions: Decisions) -> list[Instance]:
        """Return the graph runners in an object's attributes."""
        if instance in self._runners:
            return self._runners[instance]
        found: dict[Instance, None] = {}
        for cls in self._resolver.types.mro(instance.cls):
            for name in sorted(cls.stores):
                for arm in self._resolver.attributes.value(instance, name):
                    value = arm.value
                    if isinstance(value, Instance) and decisions.is_runner(value):
                        found[value] = None
        self._runners[instance] = list(found)
        return self._runners[instance]

    def _walk(self, runner: Instance, method: FunctionInfo) -> None:
        walk = Walk(self._resolver, runner, "capture", None, self._notes)
        walk.run(method)
        self.walks.append(walk)
        for met in functions_of(walk):
            if met.function in self.captured:
                continue
            span = self._captured_from(met)
            if span is not None:
                self.captured[met.function] = span

    def _captured_from(self, met: Met) -> Span | None:
        """The call by which a captured body (a function nested in a capture method) starts."""
        outside = frozenset(self._resolver.vocabulary.hazards["outside_region"])
        if met.function.name in outside or any(h.function.name in outside for h in met.chain):
            return None
        if met.function.name in self._resolver.vocabulary.capture_methods:
            return None
        if self._is_body(met.function):
            return met.function.span
        for hop in reversed(met.chain):
            if self._is_body(hop.function):
                return hop.function.module.span(hop.node)
            if hop.function.name in self._resolver.vocabulary.capture_methods:
                return None
        return None

    def _is_body(self, function: FunctionInfo) -> bool:
        """Whether a function is nested in a capture method."""
        *outer, _ = function.qualname.split(".")
        return bool(self._resolver.vocabulary.capture_methods & set(outer))

    def syncs(self, finder: SyncFinder, runner_of: Mapping[str, str]) -> dict[str, list[FoundSync]]:
        """Return what waits inside the captured bodies, by the worker that owns the runner."""
        found: dict[str, list[FoundSync]] = {}
        for walk in self.walks:
            worker = runner_of.get(walk.worker.cls.id)
            if worker is not None:
                inside = finder.find(walk, lambda hit: None, self.is_captured)
                found.setdefault(worker, []).extend(s for s in inside if s.captured)
        return found

    def is_captured(self, activation: Activation) -> bool:
        """Whether a graph runner captures this function."""
        return activation.function in self.captured

    def decisions(
        self, owned: list[Instance], phases: Phases, decisions: Decisions
    ) -> Iterator[tuple[Decision, PhaseName]]:
        """Yield the tests that say whether, and in which mode, each phase is captured."""
        for instance in owned:
            for runner in self.runners(instance, decisions):
                setters = list(self._mode_setters(runner.cls))
                for phase in self._runner_phases(runner, phases):
                    hits = phases.by_name[phase].hits
                    modes = frozenset(hit.mode.name for hit in hits if hit.mode is not None)
                    found = [decisions.built(runner)]
                    found += [decisions.capture_mode(f, modes) for f in setters]
                    yield from ((decision, phase) for decision in found if decision is not None)

    def _mode_setters(self, cls: ClassInfo) -> Iterator[FunctionInfo]:
        for base in self._resolver.types.mro(cls):
            for name in sorted(self._resolver.vocabulary.capture_mode):
                yield from base.stores.get(name, ())

    def _runner_phases(self, runner: Instance, phases: Phases) -> Iterator[PhaseName]:
        for name, found in phases.by_name.items():
            if any(hop.frame.self_value == runner for hit in found.hits for hop in hit.chain):
                yield name
