"""Collects the records of all workers into one code map."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from specmap.codemap.condition import FALSE
from specmap.codemap.graph import (
    CodeMap,
    Decision,
    DoubleDecision,
    Entry,
    Flag,
    Function,
    HostSync,
    Phase,
    SharedCode,
    Sink,
    Worker,
)
from specmap.codemap.source import Span
from specmap.codemap.verdict import PhaseName
from specmap.scan.asked import Asked, AskedFinder
from specmap.scan.capture import CaptureWalks
from specmap.scan.checkout import Checkout
from specmap.scan.decisions import Decisions
from specmap.scan.doubles import double_decisions
from specmap.scan.edges import Edges, site_key
from specmap.scan.flags import Flags
from specmap.scan.hazards import find_hazards
from specmap.scan.met import Met, functions_of
from specmap.scan.module import ClassInfo, FunctionInfo
from specmap.scan.phases import Phases, is_owned
from specmap.scan.records import class_record, function_record
from specmap.scan.resolver import Resolver
from specmap.scan.scheduling import SchedulerSide
from specmap.scan.slots import Slots
from specmap.scan.syncs import FoundSync, SyncFinder, merge
from specmap.scan.values import EnumMember, Instance
from specmap.scan.walk import Walk
from specmap.scan.walked import Notes
from specmap.scan.workers import Driven, WorkerFinder

_KINDS = ("prefill", "decode", "idle", "idle_extend")


class MapBuilder:
    """Adds one worker after another, then writes the map."""

    def __init__(self, resolver: Resolver, finder: WorkerFinder) -> None:
        self._resolver = resolver
        self._finder = finder
        self._notes = Notes()
        self._decisions = Decisions(resolver)
        self._asked = AskedFinder(resolver, self._decisions)
        self._edges = Edges(resolver)
        self._slots = Slots(resolver, self._decisions)
        self._capture = CaptureWalks(resolver, self._notes)
        self._scheduler = SchedulerSide(resolver, finder, self._notes)
        self._workers: list[Worker] = []
        self._walked: list[tuple[str, Walk, Phases]] = []
        self._doubles: list[DoubleDecision] = []
        self._sinks: dict[str, Sink] = {}
        self._flags: dict[tuple[str, Span, str], Flag] = {}
        self._decided: dict[str, Decision] = {}
        self._functions: dict[str, FunctionInfo] = {}
        self._classes: dict[str, ClassInfo] = {}
        self._eager: dict[FunctionInfo, Span] = {}

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
        phases = Phases(self._resolver, worker, walks, driven.selected_when)
        owned = self._owned(worker, walks)
        for walk in walks:
            self._note(walk, phases)
            if walk.kind == "decode":
                self._walked.append((worker.cls.id, walk, phases))
        for instance in owned:
            self._slots.add(instance)
            self._capture.add(instance, self._decisions)
        asked = self._asked.find(walks, phases)
        self._doubles += double_decisions(worker.cls.id, asked)
        decided = self._decide(worker, phases, asked, owned)
        records = phases.records(self._sinks)
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

    def _note(self, walk: Walk, phases: Phases) -> None:
        """Record the edges, functions and flags of one walk."""
        flags = Flags(self._resolver, phases)
        self._edges.note_hits(walk, phases)
        for met in functions_of(walk):
            if met.function not in self._eager:
                self._note_function(met)
            for flag in flags.of_walk(walk, met):
                self._add_flag(flag)

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

    def _note_function(self, met: Met) -> None:
        function = met.function
        self._functions.setdefault(function.id, function)
        span = function.span
        if met.chain:
            hop = met.chain[-1]
            span = hop.function.module.span(hop.node)
        self._eager.setdefault(function, span)

    def _add_flag(self, flag: Flag) -> None:
        key = (flag.name, flag.span, flag.holder)
        before = self._flags.get(key)
        self._flags[key] = flag if before is None else _joined_flag(before, flag)

    def _decide(
        self, worker: Instance, phases: Phases, asked: list[Asked], owned: list[Instance]
    ) -> dict[PhaseName, list[str]]:
        """Collect the decisions of each phase: tests, routes, and what is captured."""
        found: dict[PhaseName, dict[str, None]] = {name: {} for name in PhaseName}
        pairs = [(a.decision, phase) for a in asked for phase in a.phases]
        pairs += self._capture.decisions(owned, phases, self._decisions)
        for decision, phase in pairs:
            before = self._decided.get(decision.id, decision)
            self._decided[decision.id] = replace(
                before,
                phases=tuple(p for p in PhaseName if p in {*before.phases, phase}),
                workers=tuple(sorted({*before.workers, worker.cls.id})),
            )
            found[phase][decision.id] = None
        return {name: sorted(ids) for name, ids in found.items()}

    def finish(self, checkout: Checkout) -> CodeMap:
        """Return the map of all workers added."""
        self._add_undriven()
        scheduler = self._scheduler.edges()
        for instance, name in self._scheduler.held_in():
            self._slots.add_named(instance, name)
        syncs = self._syncs()
        drives = {site_key(site.method, site.call) for site in self._finder.sites}
        sites = [site for key, site in self._notes.sites.items() if key not in drives]
        edges = [self._edges.record(site) for site in sites]
        every = sorted([*edges, *scheduler], key=lambda e: (e.caller, e.span, e.text))
        self._complete()
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
            syncs=syncs,
            attributes=self._slots.records(),
            factories=tuple(self._finder.factories()),
            shared=self._shared(),
            doubles=tuple(
                sorted(self._doubles, key=lambda d: (d.worker, d.phase, d.first, d.second))
            ),
            hazards=find_hazards(self._resolver, self._decisions),
            problems=tuple(sorted(self._resolver.tree.problems, key=lambda p: (p.file, p.message))),
            files=self._resolver.tree.parsed_files(),
        )

    def _syncs(self) -> tuple[HostSync, ...]:
        """Find the host synchronisations of the decode cycles, the scheduler's part included."""
        finder = SyncFinder(self._resolver)
        captured = self._capture.is_captured
        found: dict[str, list[FoundSync]] = {}
        steps = self._scheduler.steps(self._mode("decode"))
        for worker, walk, phases in self._walked:
            found[worker] = finder.find(walk, phases.own, captured, phases.contradicts)
            for step in steps:
                found[worker] += finder.find(step, lambda hit: None, captured, phases.contradicts)
        owners = {owned: w.id for w in self._workers for owned in w.owns}
        for worker, inside in self._capture.syncs(finder, owners).items():
            found[worker] = [*found.get(worker, []), *inside]
        return merge(found)

    def _add_undriven(self) -> None:
        for cls, why in self._finder.undriven():
            self._workers.append(
                Worker(
                    id=cls.id,
                    name=cls.name,
                    span=cls.span,
                    mro=tuple(c.id for c in self._resolver.types.mro(cls)),
                    entry=None,
                    selected_when=FALSE,
                    selected_at=None,
                    reachable=False,
                    note=why,
                )
            )

    def _complete(self) -> None:
        """Add the functions and classes that the edges and workers name."""
        for site in self._notes.sites.values():
            self._functions.setdefault(site.function.id, site.function)
            for value, function in site.targets.items():
                if function is not None:
                    self._functions.setdefault(function.id, function)
                cls = getattr(value, "cls", None)
                if function is None and isinstance(cls, ClassInfo):
                    self._classes.setdefault(cls.id, cls)
        for drive in self._finder.sites:
            self._functions.setdefault(drive.method.id, drive.method)
            for arm in drive.receivers:
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


def _owner_id(function: FunctionInfo) -> str:
    return function.owner.id if function.owner is not None else function.id


def _origin_span(worker: Instance) -> Span | None:
    if worker.origin is None:
        return None
    return worker.origin.scope.frame.module.span(worker.origin.call)


def _with_decisions(phase: Phase, decided: dict[PhaseName, list[str]]) -> Phase:
    return replace(phase, decisions=tuple(decided.get(phase.name, ())))


def _joined_flag(first: Flag, second: Flag) -> Flag:
    """One flag met in several walks: a real batch's phase wins over an idle one's."""
    best, other = (first, second) if first.phase != "idle" else (second, first)
    guards = tuple(dict.fromkeys((*best.guards, *other.guards)))
    workers = tuple(sorted({*first.workers, *second.workers}))
    decides = first.decides or second.decides
    return replace(best, guards=guards, workers=workers, decides=decides)
