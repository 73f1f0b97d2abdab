"""Phases of one worker: its sinks, sorted by which model runs in which forward mode."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from specmap.codemap.condition import (
    FALSE,
    TRUE,
    All,
    AtomKind,
    Condition,
    all_of,
    any_of,
    atoms_of,
    simplify,
)
from specmap.codemap.graph import Arm, Phase, Sink
from specmap.codemap.shortening import shorten
from specmap.codemap.source import Span
from specmap.codemap.verdict import PhaseName, SinkKind, Verdict
from specmap.scan.guards import Exit, Path, Test
from specmap.scan.module import FunctionInfo
from specmap.scan.resolver import Resolver
from specmap.scan.shapes import static_shape
from specmap.scan.unfollowed import unfollowed
from specmap.scan.values import Frame, Instance
from specmap.scan.walk import Walk
from specmap.scan.walked import Hit, Hop, hop_condition


@dataclass(eq=False)
class PhaseHits:
    """The hits of one phase and the deepest function that all of them go through."""

    name: PhaseName
    role: str
    hits: list[Hit] = field(default_factory=list)
    stand_in: set[str] = field(default_factory=set)

    @property
    def pivot(self) -> FunctionInfo:
        """The deepest function common to every chain: there the arms part."""
        common: list[FunctionInfo] = [hop.function for hop in self.hits[0].chain]
        for hit in self.hits[1:]:
            functions = {hop.function for hop in hit.chain}
            common = [f for f in common if f in functions]
        return common[-1]


def is_idle(walk: Walk) -> bool:
    """Whether a walk carries no request: its passes only keep other ranks company."""
    return walk.kind.startswith("idle")


class Phases:
    """Sorts the hits of a worker's walks into phases.

    ``given`` is the condition under which the worker runs at all: a way that contradicts it
    is never taken.
    """

    def __init__(
        self,
        resolver: Resolver,
        worker: Instance,
        walks: Sequence[Walk],
        given: Condition = TRUE,
    ) -> None:
        self._given = given
        self._resolver = resolver
        self._worker = worker
        self._walks = {walk.kind: walk for walk in walks}
        self._names: dict[int, PhaseName] = {}
        self._contradicted: dict[Condition, bool] = {}
        self.by_name: dict[PhaseName, PhaseHits] = {}
        for walk in walks:
            if not is_idle(walk):
                self._sort(walk)
        self._keep_its_own()

    def _keep_its_own(self) -> None:
        """Leave each phase the passes that are its own; one that has none does not run."""
        modes = self._resolver.vocabulary.modes
        for found in self.by_name.values():
            # A rank of a busy batch may have nothing to do: that pass is not the phase.
            found.hits = [
                h for h in found.hits if h.mode is None or h.mode.name not in modes["idle"]
            ]
            # "Some runner" of an annotation stands for those that are known.
            known = [hit for hit in found.hits if self.role(hit) != "unknown"]
            found.hits = known or found.hits
        verify = self.by_name.get(PhaseName.VERIFY)
        if verify is not None:
            # A plain decode pass of the target stands in for the cycle: it verifies nothing.
            names = modes["verify"]
            proper = [hit for hit in verify.hits if hit.mode is None or hit.mode.name in names]
            if proper:
                verify.stand_in = {h.mode.name for h in verify.hits if h.mode}.difference(names)
            verify.hits = proper or verify.hits
        self.by_name = {name: found for name, found in self.by_name.items() if found.hits}

    def name_of(self, hit: Hit) -> PhaseName | None:
        """Return the phase of a hit."""
        return self._names.get(id(hit))

    def own(self, hit: Hit) -> PhaseName | None:
        """Return the phase that a hit is a pass of; ``None`` for one that stands in for it."""
        name = self._names.get(id(hit))
        found = self.by_name.get(name) if name is not None else None
        return name if found is not None and hit in found.hits else None

    def _sort(self, walk: Walk) -> None:
        roles = [self._sorted_role(hit) for hit in walk.hits]
        extends = any(map(self._extends, walk.hits))
        own_draft = "draft" in roles
        verified: list[Hit] = []
        for index, (hit, role) in enumerate(zip(walk.hits, roles, strict=True)):
            if walk.kind == "prefill":
                draft = role == "draft"
                name = PhaseName.DRAFT_PREFILL if draft else PhaseName.TARGET_PREFILL
            elif role == "draft":
                name = self._draft_name(hit, extends, verified)
            elif not own_draft and self._is_followed(walk.hits, index):
                name = PhaseName.DRAFT
            else:
                name = PhaseName.VERIFY
                verified.append(hit)
            self._names[id(hit)] = name
            self.by_name.setdefault(name, PhaseHits(name, role)).hits.append(hit)

    def _sorted_role(self, hit: Hit) -> str:
        role = self.role(hit)
        return "draft" if role == "unknown" and self._extends(hit) else role

    def _extends(self, hit: Hit) -> bool:
        """Whether a pass is in a mode that only drafts run."""
        names = self._resolver.vocabulary.modes["draft_extend"]
        return hit.mode is not None and hit.mode.name in names

    def _draft_name(self, hit: Hit, extends: bool, verified: list[Hit]) -> PhaseName:
        if self._extends(hit):
            return PhaseName.DRAFT_EXTEND
        # A worker without that mode re-seeds its draft after the verify pass.
        if not extends and any(not self._excludes(v.chain, hit.chain) for v in verified):
            return PhaseName.DRAFT_EXTEND
        return PhaseName.DRAFT

    def _is_followed(self, hits: Sequence[Hit], index: int) -> bool:
        """Whether the target runs again later in the same cycle: then this pass drafts."""
        mine = self._pass(hits[index])
        for later in hits[index + 1 :]:
            other = self._pass(later)
            same = [hop.node for hop in other] == [hop.node for hop in mine]
            if same or self._excludes(mine, other):
                continue
            return True
        return False

    def _pass(self, hit: Hit) -> tuple[Hop, ...]:
        """The chain down to the call that starts the model runner."""
        names = self._resolver.vocabulary.model_runner
        for index, hop in enumerate(hit.chain):
            this = hop.frame.self_value
            if isinstance(this, Instance) and index and this.cls.name in names:
                return hit.chain[:index]
        return hit.chain

    def _excludes(self, first: tuple[Hop, ...], second: tuple[Hop, ...]) -> bool:
        shared = 0
        for one, two in zip(first, second, strict=False):
            if one.node is not two.node or one.frame is not two.frame:
                break
            shared += 1
        if shared < min(len(first), len(second)):
            if _apart(first[shared].path, second[shared].path):
                return True
        both = all_of(
            hop_condition(self._resolver, first[shared:]),
            hop_condition(self._resolver, second[shared:]),
        )
        return simplify(both) == FALSE

    def role(self, hit: Hit) -> str:
        """Return whose model a hit runs: the innermost model runner's owner decides.

        Without one on the way, whoever the sink's own call is made on.
        """
        names = self._resolver.vocabulary.model_runner
        instances = [*hit.on, *(h.frame.self_value for h in reversed(hit.chain))]
        runners = [i for i in instances if isinstance(i, Instance) and self._is_runner(i, names)]
        for instance in runners or instances:
            if isinstance(instance, Instance):
                found = self._owner_role(instance)
                if found is not None:
                    return found
        return "unknown"

    def runner_role(self, runner: Instance) -> str | None:
        """Return whose model a model runner runs; ``None`` is no model runner, or nobody's."""
        names = self._resolver.vocabulary.model_runner
        return self._owner_role(runner) if self._is_runner(runner, names) else None

    def _is_runner(self, instance: Instance, names: frozenset[str]) -> bool:
        return any(c.name in names for c in self._resolver.types.mro(instance.cls))

    def _owner_role(self, instance: Instance) -> str | None:
        current: Instance | None = instance
        while current is not None:
            if current.cls is self._worker.cls:
                return "draft"
            if current.cls.name in self._resolver.vocabulary.scheduler:
                return "target"
            current = current.owner
        return None

    def records(self, sinks: dict[str, Sink]) -> tuple[Phase, ...]:
        """Return the five phases; one without any pass is NOT_RUN."""
        return tuple(self._record(name, sinks) for name in PhaseName)

    def _record(self, name: PhaseName, sinks: dict[str, Sink]) -> Phase:
        found = self.by_name.get(name)
        if found is None:
            return self._not_run(name)
        pivot = found.pivot
        arms = self._arms(found, pivot, sinks)
        if not arms:
            return self._not_run(name)
        graph = _ending(arms, SinkKind.GRAPH)
        pieces = _ending(arms, SinkKind.PIECEWISE)
        holder = self._holder(found.hits[0], pivot)
        modes = dict.fromkeys(h.mode.name for h in found.hits if h.mode is not None)
        is_verify = name is PhaseName.VERIFY
        return Phase(
            name=name,
            role=found.role,
            forward_modes=tuple(modes),
            span=holder.span,
            holder=holder.id,
            arms=arms,
            graph_when=graph,
            verdict=_verdict(graph, pieces),
            static_shape=static_shape(self._resolver, self._worker) if is_verify else None,
            stand_in_modes=tuple(sorted(found.stand_in)),
        )

    def _not_run(self, name: PhaseName) -> Phase:
        entry = next(iter(self._walks.values())).activations[0].function
        note, verdict = unfollowed(self._resolver, self._walks.values()), Verdict.UNKNOWN
        if not note:
            verdict = Verdict.NOT_RUN
            note = "no model forward of this phase is reached from the worker's entry"
        return Phase(name, "", (), entry.span, entry.id, (), FALSE, verdict, note=note)

    def _arms(
        self, found: PhaseHits, pivot: FunctionInfo, sinks: dict[str, Sink]
    ) -> tuple[Arm, ...]:
        merged: dict[tuple[object, ...], Arm] = {}
        for hit in found.hits:
            start = next(i for i, hop in enumerate(hit.chain) if hop.function is pivot)
            suffix = hit.chain[start:]
            key = (hit.kind, *((hop.function, hop.node) for hop in suffix))
            outer = _settings_alone(simplify(hop_condition(self._resolver, hit.chain[:start])))
            condition = simplify(all_of(outer, hop_condition(self._resolver, suffix)))
            if condition == FALSE or self.contradicts(condition):
                continue
            last = hit.chain[-1]
            sink = sink_of(hit.kind, last)
            sinks.setdefault(sink.id, sink)
            before = merged.get(key)
            if before is not None:
                condition = simplify(any_of(before.condition, condition))
            chain = tuple((hop.function.id, hop.node.lineno) for hop in hit.chain)
            merged[key] = Arm(sink.id, hit.kind, condition, before.chain if before else chain)
        arms = (replace(arm, condition=shorten(arm.condition)) for arm in merged.values())
        return tuple(arm for arm in arms if arm.condition != FALSE)

    def contradicts(self, condition: Condition) -> bool:
        """Whether a condition cannot hold where this worker runs."""
        if condition not in self._contradicted:
            meant = self._resolver.settled(condition)
            apart = set(atoms_of(self._given)).isdisjoint(atoms_of(meant))
            self._contradicted[condition] = (
                not apart and simplify(all_of(self._given, meant)) == FALSE
            )
        return self._contradicted[condition]

    def _holder(self, hit: Hit, pivot: FunctionInfo) -> FunctionInfo:
        """The worker's (or its draft worker's) own method that runs the phase."""
        folder = self._resolver.vocabulary.speculative
        holder = hit.chain[0].function
        for hop in hit.chain:
            this = hop.frame.self_value
            inside = hop.function.module.file.startswith(f"{folder}/")
            if isinstance(this, Instance) and inside and self._belongs(this):
                holder = hop.function
            if hop.function is pivot:
                break
        return holder

    def _belongs(self, instance: Instance) -> bool:
        if any(
            n in self._resolver.vocabulary.decisions for n in _methods(self._resolver, instance)
        ):
            return False
        current: Instance | None = instance
        while current is not None:
            if current.cls is self._worker.cls:
                return True
            current = current.owner
        return False


def _apart(first: Path, second: Path) -> bool:
    """Whether two paths of one function take different arms of some test."""
    taken = {(id(item.node), item.branch) for item in first if isinstance(item, Test)}
    for item in second:
        if isinstance(item, Test) and (id(item.node), not item.branch) in taken:
            return True
        if isinstance(item, Exit) and item.path:
            tests = [test for test in item.path if isinstance(test, Test)]
            if len(tests) == len(item.path) and all((id(t.node), t.branch) in taken for t in tests):
                return True
    return False


def _methods(resolver: Resolver, instance: Instance) -> list[str]:
    return [name for cls in resolver.types.mro(instance.cls) for name in cls.methods]


def _ending(arms: tuple[Arm, ...], kind: SinkKind) -> Condition:
    return shorten(simplify(any_of(*(arm.condition for arm in arms if arm.kind is kind))))


def _verdict(graph: Condition, pieces: Condition) -> Verdict | None:
    if graph == TRUE:
        return Verdict.GRAPH
    if graph != FALSE:
        return None
    if pieces == FALSE:
        return Verdict.EAGER
    return Verdict.PIECEWISE if pieces == TRUE else None


def sink_of(kind: SinkKind, hop: Hop) -> Sink:
    """Return the sink record of the last hop of a chain."""
    module = hop.function.module
    span = module.span(hop.node)
    name = f"{hop.function.id}:{span.line}"
    return Sink(
        name,
        kind,
        hop.function.id,
        Span(span.file, span.line, span.end_line),
        module.text(hop.node),
    )


def is_owned(frame: Frame, worker: Instance) -> bool:
    """Whether a frame runs on the worker or on something it made."""
    current = frame.self_value if isinstance(frame.self_value, Instance) else None
    while current is not None:
        if current.cls is worker.cls:
            return True
        current = current.owner
    return False


def _settings_alone(term: Condition) -> Condition:
    """Keep the conjuncts that compare settings and environment variables, and nothing else."""
    kept = (
        part
        for part in (term.terms if isinstance(term, All) else (term,))
        if all(
            atom.kind is AtomKind.LAUNCH and "(" not in atom.text.replace(".get()", "")
            for atom in atoms_of(part)
        )
    )
    return all_of(*(part for part in kept if part != FALSE))
