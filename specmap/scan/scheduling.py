"""The scheduler's side: how it chooses, makes and drives its workers."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from specmap.codemap.graph import CallEdge, EdgeStatus
from specmap.scan.edges import callee_ids, rejected, unknown_callees
from specmap.scan.guards import Bound
from specmap.scan.module import ClassInfo, FunctionInfo
from specmap.scan.records import guards_of
from specmap.scan.resolver import Resolver
from specmap.scan.values import EnumMember, FunctionRef, Instance, Value
from specmap.scan.walk import Walk
from specmap.scan.walked import Notes
from specmap.scan.workers import DriveSite, WorkerFinder, receivers_under


class SchedulerSide:
    """Records the calls by which the scheduler chooses and drives its workers."""

    def __init__(self, resolver: Resolver, finder: WorkerFinder, notes: Notes) -> None:
        self._resolver = resolver
        self._finder = finder
        self._notes = notes

    def edges(self) -> list[CallEdge]:
        """Return the drive sites and the factory calls as edges; walks the factories."""
        found = [self._drive_edge(site) for site in self._finder.sites]
        for binding in self._factory_calls():
            found.append(self._factory_edge(binding))
        return found

    def held_in(self) -> Iterator[tuple[Instance, str]]:
        """Yield the scheduler's attributes that hold what it drives."""
        for scheduler in self._finder.schedulers:
            for site in self._finder.sites:
                receiver = site.receiver
                if isinstance(receiver, ast.Attribute):
                    yield scheduler, receiver.attr

    def steps(self, mode: EnumMember | None) -> list[Walk]:
        """Walk the scheduler's own steps of a decode cycle, short of every worker."""
        stop = frozenset(self._entries())
        walks = []
        for step in self._resolver.vocabulary.scheduler_steps:
            owner, _, name = step.rpartition(".")
            for cls in self._resolver.tree.classes_named(owner):
                method = self._resolver.types.method(cls, name)
                if method is not None:
                    this = self._object(cls)
                    walk = Walk(self._resolver, this, "scheduler", mode, self._notes, stop)
                    walk.run(method)
                    walks.append(walk)
        return walks

    def _object(self, cls: ClassInfo) -> Instance:
        known = (s for s in self._finder.schedulers if s.cls is cls)
        return next(known, self._resolver.any_instance(cls))

    def _entries(self) -> Iterator[FunctionInfo]:
        """Every function that a drive site can call."""
        for site in self._finder.sites:
            for arm in site.receivers:
                if isinstance(arm.value, Instance):
                    entry = self._resolver.types.method(arm.value.cls, site.name)
                    if entry is not None:
                        yield entry

    def _drive_edge(self, site: DriveSite) -> CallEdge:
        targets: dict[Value, FunctionInfo | None] = {}
        for arm in receivers_under(site, self._resolver):
            if isinstance(arm.value, Instance):
                entry = self._resolver.types.method(arm.value.cls, site.name)
                if entry is not None:
                    targets[FunctionRef(entry, arm.value)] = entry
            else:
                targets[arm.value] = None
        callees = callee_ids(targets, self._resolver)
        module = site.method.module
        return CallEdge(
            caller=site.method.id,
            span=module.span(site.call),
            text=module.text(site.call.func),
            callees=callees,
            status=EdgeStatus.STATIC if callees else EdgeStatus.UNRESOLVED,
            guards=guards_of(site.path, site.method, site.call),
            rules=("conditional attribute", "factory"),
            also_unknown=unknown_callees(targets),
            rejects=rejected(targets, site.call),
            reason="" if callees else "no worker object is known here",
        )

    def _factory_calls(self) -> list[Bound]:
        """The calls whose result is the class of a worker."""
        found: dict[ast.AST, Bound] = {}
        for driven in self._finder.driven:
            origin = driven.instance.origin
            if origin is None or not isinstance(origin.call.func, ast.Name):
                continue
            binding = origin.scope.env.get(origin.call.func.id)
            if isinstance(binding, Bound) and isinstance(binding.node, ast.Call):
                found.setdefault(binding.node, binding)
        return list(found.values())

    def _factory_edge(self, binding: Bound) -> CallEdge:
        frame, call = binding.scope.frame, binding.node
        assert frame.function is not None and isinstance(call, ast.Call)
        targets = self._resolver.calls.targets(call, binding.scope)
        functions = {arm.value: function for arm, function in targets}
        for value, function in functions.items():
            if function is not None and isinstance(value, FunctionRef):
                this = value.self_value
                owner = function.owner or frame.function.owner
                if not isinstance(this, Instance) and owner is not None:
                    this = Instance(owner, "factory")
                if isinstance(this, Instance):
                    walk = Walk(self._resolver, this, "factory", None, self._notes)
                    walk.run(function, call, binding.scope)
        module = frame.module
        return CallEdge(
            caller=frame.function.id,
            span=module.span(call),
            text=module.text(call.func),
            callees=callee_ids(functions, self._resolver),
            status=EdgeStatus.STATIC,
            rules=("factory",),
            also_unknown=unknown_callees(functions),
        )
