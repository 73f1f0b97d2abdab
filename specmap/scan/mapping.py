"""Collects the records of all workers into one code map."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from specmap.codemap.condition import simplify
from specmap.codemap.graph import (
    CallEdge,
    CodeMap,
    Decision,
    EdgeStatus,
    Entry,
    Flag,
    Function,
    SharedCode,
    Sink,
    Worker,
)
from specmap.codemap.source import Span
from specmap.codemap.verdict import PhaseName
from specmap.scan.capture import CaptureWalks
from specmap.scan.checkout import Checkout
from specmap.scan.decisions import Decisions
from specmap.scan.doubles import double_decisions
from specmap.scan.edges import Edges, callee_ids, rejected, unknown_callees
from specmap.scan.flags import Flags
from specmap.scan.guards import Bound
from specmap.scan.module import ClassInfo, FunctionInfo
from specmap.scan.phases import Phases, is_owned
from specmap.scan.records import class_record, function_record, guards_of
from specmap.scan.resolver import Resolver
from specmap.scan.slots import Slots
from specmap.scan.values import EnumMember, FunctionRef, Instance, Value
from specmap.scan.walk import Activation, Notes, Subtree, Walk
from specmap.scan.workers import Driven, DriveSite, WorkerFinder, receivers_under

_KINDS = ("prefill", "decode", "idle")


class MapBuilder:
    """Adds one worker after another, then writes the map."""

    def __init__(self, resolver: Resolver, finder: WorkerFinder) -> None:
        self._resolver = resolver
        self._finder = finder
        self._notes = Notes()
        self._decisions = Decisions(resolver)
        self._edges = Edges(resolver)
        self._slots = Slots(resolver, self._decisions)
        self._capture = CaptureWalks(resolver, self._notes)
        self._workers: list[Worker] = []
        self._sinks: dict[str, Sink] = {}
        self._flags: dict[tuple[str, Span, str], Flag] = {}
        self._decided: dict[str, Decision] = {}
        self._functions: dict[str, FunctionInfo] = {}
        self._classes: dict[str, ClassInfo] = {}
        self._eager: dict[FunctionInfo, Span] = {}
        self._entries = frozenset(d.entry for d in finder.driven)

    def _mode(self, kind: str) -> EnumMember | None:
        names = self._resolver.vocabulary.modes[kind]
        for enum in sorted(self._resolver.vocabulary.mode_enum):
            for cls in self._resolver.tree.classes_named(enum):
                for name in names:
                    if name in cls.assigns:
                        return EnumMember(cls, name)
        return None

    def add(self, driven: Driven) -> None:
        """Walk one worker and record its phases, flags, decisions and attributes."""
        worker = driven.instance
        walks = [self._walk(driven, kind) for kind in _KINDS]
        phases = Phases(self._resolver, worker, walks)
        flags = Flags(self._resolver, phases)
        owned = self._owned(worker, walks)
        for walk in walks:
            self._edges.note_hits(walk, phases)
            for activation in all_activations(walk):
                self._note_function(activation)
                for flag in flags.of_walk(walk, activation):
                    self._add_flag(flag)
        for instance in owned:
            self._slots.add(instance)
            self._capture.add(instance, self._decisions)
        records = phases.records(self._sinks)
        decided = self._decide(driven, phases, walks, owned)
        self._workers.append(
            Worker(
                id=worker.cls.id,
                name=worker.cls.name,
                span=worker.cls.span,
                mro=tuple(c.id for c in self._resolver.types.mro(worker.cls)),
                entry=Entry(driven.entry.name, _owner_id(driven.entry), driven.entry.span),
                selected_when=driven.selected_when,
                selected_at=_origin_span(worker),
                phases=tuple(_with_decisions(p, decided) for p in records),
                owns=tuple(sorted({i.cls.id for i in owned if i != worker})),
            )
        )

    def _walk(self, driven: Driven, kind: str) -> Walk:
        walk = Walk(self._resolver, driven.instance, kind, self._mode(kind), self._notes)
        site = driven.sites[0]
        walk.run(driven.entry, site.call, site.scope)
        return walk

    def _owned(self, worker: Instance, walks: Iterable[Walk]) -> list[Instance]:
        """The worker, what it made, and the runners that its walks went through."""
        found: dict[Instance, None] = {worker: None}
        runners = self._resolver.vocabulary.model_runner
        for walk in walks:
            for activation in walk.activations:
                this = activation.frame.self_value
                if not isinstance(this, Instance) or this.rule == "annotation":
                    continue
                if is_owned(activation.frame, worker) or this.cls.name in runners:
                    found[this] = None
        return list(found)

    def _note_function(self, activation: Activation) -> None:
        function = activation.function
        self._functions.setdefault(function.id, function)
        span = function.span
        if activation.chain:
            hop = activation.chain[-1]
            span = hop.function.module.span(hop.node)
        self._eager.setdefault(function, span)

    def _add_flag(self, flag: Flag) -> None:
        key = (flag.name, flag.span, flag.holder)
        before = self._flags.get(key)
        self._flags[key] = flag if before is None else _joined_flag(before, flag)

    def _decide(
        self, driven: Driven, phases: Phases, walks: list[Walk], owned: list[Instance]
    ) -> dict[PhaseName, list[str]]:
        """Collect the decisions of each phase: tests, routes, and what is captured."""
        found: dict[PhaseName, dict[str, None]] = {name: {} for name in PhaseName}
        names = self._resolver.vocabulary.decisions
        for walk in walks:
            if walk.kind == "idle":
                continue
            for activation in all_activations(walk):
                phase = self._phase_at(walk, phases, activation)
                if phase is None:
                    continue
                if activation.function.name in names and activation.function.owner:
                    self._keep(self._decisions.can_run(activation.function), phase, driven, found)
                else:
                    for route in self._decisions.routes(activation.function):
                        self._keep(route, phase, driven, found)
        for decision, phase in self._capture.decisions(owned, phases, self._decisions):
            self._keep(decision, phase, driven, found)
        return {name: sorted(ids) for name, ids in found.items()}

    def _phase_at(self, walk: Walk, phases: Phases, activation: Activation) -> PhaseName | None:
        """The phase of the passes inside a function, else of the next pass after it."""
        first, last = activation.passes
        inside = walk.hits[first:last] or walk.hits[first : first + 1] or walk.hits[-1:]
        return phases.name_of(inside[0]) if inside else None

    def _keep(
        self,
        decision: Decision,
        phase: PhaseName,
        driven: Driven,
        found: dict[PhaseName, dict[str, None]],
    ) -> None:
        from dataclasses import replace

        before = self._decided.get(decision.id, decision)
        self._decided[decision.id] = replace(
            before,
            phases=tuple(p for p in PhaseName if p in {*before.phases, phase}),
            workers=tuple(sorted({*before.workers, driven.instance.cls.id})),
        )
        found[phase][decision.id] = None

    def finish(self, checkout: Checkout) -> CodeMap:
        """Return the map of all workers added."""
        self._add_undriven()
        scheduler = self._scheduler_edges()
        edges = [self._edges.record(site) for site in self._notes.sites.values()]
        every = sorted([*edges, *scheduler], key=lambda e: (e.caller, e.span, e.text))
        self._complete(every)
        classes = tuple(
            class_record(cls, self._resolver) for _, cls in sorted(self._classes.items())
        )
        return CodeMap(
            target=checkout.label,
            release=checkout.release,
            commit=checkout.commit,
            platform=self._resolver.platform,
            workers=tuple(sorted(self._workers, key=lambda w: w.id)),
            classes=classes,
            functions=self._function_records(),
            edges=tuple(every),
            decisions=tuple(self._decided[k] for k in sorted(self._decided)),
            sinks=tuple(self._sinks[k] for k in sorted(self._sinks)),
            flags=tuple(sorted(self._flags.values(), key=lambda f: (f.span, f.name, f.holder))),
            syncs=(),
            attributes=self._slots.records(),
            factories=tuple(self._finder.factories()),
            shared=self._shared(),
            doubles=double_decisions(self._workers, self._decided),
            problems=tuple(sorted(self._resolver.tree.problems, key=lambda p: (p.file, p.message))),
            files=self._resolver.tree.parsed_files(),
        )

    def _add_undriven(self) -> None:
        for cls, why in self._finder.undriven():
            self._workers.append(
                Worker(
                    id=cls.id,
                    name=cls.name,
                    span=cls.span,
                    mro=tuple(c.id for c in self._resolver.types.mro(cls)),
                    entry=None,
                    selected_when=simplify(_never()),
                    selected_at=None,
                    reachable=False,
                    note=why,
                )
            )

    def _scheduler_edges(self) -> list[CallEdge]:
        """The edges by which the scheduler drives and chooses its workers."""
        found = [self._drive_edge(site) for site in self._finder.sites]
        seen: set[int] = set()
        for driven in self._finder.driven:
            origin = driven.instance.origin
            if origin is None or not isinstance(origin.call.func, ast.Name):
                continue
            binding = origin.scope.env.get(origin.call.func.id)
            if isinstance(binding, Bound) and isinstance(binding.node, ast.Call):
                if id(binding.node) not in seen:
                    seen.add(id(binding.node))
                    found += self._factory_edges(binding)
        for scheduler in self._finder.schedulers:
            for site in self._finder.sites:
                if isinstance(site.call.func, ast.Attribute):
                    receiver = site.call.func.value
                    if isinstance(receiver, ast.Attribute):
                        self._slots.add_named(scheduler, receiver.attr)
        return found

    def _drive_edge(self, site: DriveSite) -> CallEdge:
        assert isinstance(site.call.func, ast.Attribute)
        name = site.call.func.attr
        targets: dict[Value, FunctionInfo | None] = {}
        for arm in receivers_under(site, self._resolver):
            if isinstance(arm.value, Instance):
                entry = self._resolver.types.method(arm.value.cls, name)
                if entry is not None:
                    targets[FunctionRef(entry, arm.value)] = entry
            else:
                targets[arm.value] = None
        module = site.method.module
        return CallEdge(
            caller=site.method.id,
            span=module.span(site.call),
            text=module.text(site.call.func),
            callees=callee_ids(targets, self._resolver),
            status=EdgeStatus.STATIC if targets else EdgeStatus.UNRESOLVED,
            guards=guards_of(site.path, site.method),
            rules=("conditional attribute", "factory"),
            also_unknown=unknown_callees(targets),
            rejects=rejected(targets, site.call),
            reason="" if targets else "no worker object is known here",
        )

    def _factory_edges(self, binding: Bound) -> list[CallEdge]:
        frame = binding.scope.frame
        assert frame.function is not None and isinstance(binding.node, ast.Call)
        targets = dict(self._resolver.calls.targets(binding.node, binding.scope))
        functions = {arm.value: f for arm, f in targets.items()}
        for arm, function in targets.items():
            if function is not None and isinstance(arm.value, FunctionRef):
                this = arm.value.self_value
                holder = this if isinstance(this, Instance) else Instance(frame.function.owner or function.owner, "factory")  # type: ignore[arg-type]
                walk = Walk(self._resolver, holder, "factory", None, self._notes)
                walk.run(function, binding.node, binding.scope)
        module = frame.module
        return [
            CallEdge(
                caller=frame.function.id,
                span=module.span(binding.node),
                text=module.text(binding.node.func),
                callees=callee_ids(functions, self._resolver),
                status=EdgeStatus.STATIC,
                rules=("factory",),
                also_unknown=unknown_callees(functions),
            )
        ]

    def _complete(self, edges: list[CallEdge]) -> None:
        """Add the functions and classes that the edges and workers name."""
        for site in self._notes.sites.values():
            self._functions.setdefault(site.function.id, site.function)
            for value, function in site.targets.items():
                if function is not None:
                    self._functions.setdefault(function.id, function)
                cls = getattr(value, "cls", None)
                if function is None and isinstance(cls, ClassInfo):
                    self._classes.setdefault(cls.id, cls)
        for site in self._finder.sites:
            self._functions.setdefault(site.method.id, site.method)
            for arm in site.receivers:
                if isinstance(arm.value, Instance):
                    self._add_class(arm.value.cls)
        for driven in self._finder.driven:
            self._add_class(driven.instance.cls)
        for cls, _ in self._finder.undriven():
            self._add_class(cls)
        for cls in self._slots.classes():
            self._add_class(cls)
        for function in list(self._functions.values()):
            if function.owner is not None:
                self._classes.setdefault(function.owner.id, function.owner)
        for cls in list(self._classes.values()):
            self._add_class(cls)

    def _add_class(self, cls: ClassInfo) -> None:
        folder = self._resolver.vocabulary.speculative
        for base in self._resolver.types.mro(cls):
            self._classes[base.id] = base
            if base.module.file.startswith(f"{folder}/"):
                for method in base.methods.values():
                    self._functions.setdefault(method.id, method)

    def _function_records(self) -> tuple[Function, ...]:
        return tuple(
            function_record(function, self._resolver)
            for _, function in sorted(self._functions.items())
        )

    def _shared(self) -> tuple[SharedCode, ...]:
        found = []
        for function, captured in self._capture.captured.items():
            eager = self._eager.get(function)
            if eager is not None:
                found.append(SharedCode(function.id, captured, eager))
        return tuple(sorted(found, key=lambda s: s.function))


def _never():  # type: ignore[no-untyped-def]
    from specmap.codemap.condition import FALSE

    return FALSE


def _owner_id(function: FunctionInfo) -> str:
    return function.owner.id if function.owner is not None else function.id


def _origin_span(worker: Instance) -> Span | None:
    if worker.origin is None:
        return None
    return worker.origin.scope.frame.module.span(worker.origin.call)


def _with_decisions(phase, decided):  # type: ignore[no-untyped-def]
    from dataclasses import replace

    return replace(phase, decisions=tuple(decided.get(phase.name, ())))


def _joined_flag(first: Flag, second: Flag) -> Flag:
    """One flag met in several walks: a real batch's phase wins over an idle one's."""
    from dataclasses import replace

    best, other = (first, second) if first.phase != "idle" else (second, first)
    guards = tuple(dict.fromkeys((*best.guards, *other.guards)))
    return replace(best, guards=guards, workers=tuple(sorted({*first.workers, *second.workers})))


def all_activations(walk: Walk) -> Iterable[Activation]:
    """Yield the functions a walk went through, those of shared subtrees included."""
    yield from walk.activations
    seen: set[Subtree] = set()
    pending = [subtree for subtree, _ in walk.used]
    while pending:
        subtree = pending.pop()
        if subtree in seen:
            continue
        seen.add(subtree)
        yield from subtree.activations
        pending += [inner for inner, _ in subtree.inner]
