"""Makes the wrap plan from the code map, so that no name of SGLang stands in the tracer's code."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping

from specmap.codemap.graph import CodeMap, Decision, Phase, SyncKind, Worker
from specmap.codemap.source import Span, file_of, qualname_of
from specmap.codemap.verdict import PhaseName, SinkKind
from specmap.trace.names import TraceNames
from specmap.trace.plan import (
    SCHEMA,
    Accept,
    BatchNames,
    GraphNames,
    PlanPhase,
    PlanTerm,
    PlanWorker,
    RankNames,
    Role,
    SyncSite,
    Target,
    WrapPlan,
)


def plan_of(code_map: CodeMap, names: TraceNames) -> WrapPlan:
    """Make the plan of a map; workers that cannot run are left out."""
    workers = [w for w in code_map.workers if w.entry is not None and w.reachable]
    roles = _Roles(code_map)
    for worker in workers:
        roles.add_worker(worker)
    targets = tuple(roles.targets())
    ids = {t.symbol: t.id for t in targets if t.timed}
    return WrapPlan(
        schema=SCHEMA,
        release=code_map.release,
        package=names.package,
        batch=BatchNames(
            names.mode_attribute, names.batch_size, names.mode_enum, names.batch_parameters
        ),
        graph=GraphNames(
            names.graph_classes,
            names.graph_replay,
            names.graph_capture,
            names.graph_size,
            names.collective_kernels,
        ),
        accept=tuple(_accepts(names, len(targets))),
        rank=RankNames(names.rank_processes, names.rank_names),
        targets=targets,
        workers=tuple(_worker(worker, ids, roles) for worker in workers),
        syncs=tuple(_syncs(code_map)),
    )


class _Roles:
    """Collects the symbols to wrap, with why."""

    def __init__(self, code_map: CodeMap) -> None:
        self._map = code_map
        self._decisions = {d.id: d for d in code_map.decisions if d.kind != "capture"}
        self._spans = {function.id: function.span for function in code_map.functions}
        self._runners = {_owner(d.holder) for d in code_map.decisions if d.kind == "can_run"}
        self._names: dict[str, set[PhaseName]] = defaultdict(set)
        for phase in (phase for worker in code_map.workers for phase in worker.phases):
            for symbol in (symbol for arm in phase.arms for symbol, _ in arm.chain):
                self._names[symbol].add(phase.name)
        self._roles: dict[str, set[Role]] = {}
        self._sinks: dict[str, set[SinkKind]] = {}
        self._asked: dict[str, dict[str, Decision]] = {}

    def add_worker(self, worker: Worker) -> None:
        """Add a worker's entry, and of each phase the holder, sinks, runners and decisions."""
        self._add(entry_symbol(worker), Role.ENTRY)
        for phase in _running(worker):
            self._add(self.scope(worker, phase), Role.PHASE)
            for arm in phase.arms:
                self._add_chain([symbol for symbol, _ in arm.chain], arm.kind)
            for decision in map(self._decisions.get, phase.decisions):
                if decision is not None:
                    self._add(decision.holder, Role.DECISION)
                    self._asked.setdefault(decision.holder, {})[decision.id] = decision
        for symbol in _telling(worker):
            self._add(symbol, Role.PASS)

    def scope(self, worker: Worker, phase: Phase) -> str:
        """Return the method in which only this phase runs; the entry where there is none.

        A holder that is the entry holds other phases too. Below it counts what most ways of
        the phase share, what no phase of another name runs through, and no runner: those
        serve every phase.
        """
        if phase.holder != entry_symbol(worker):
            return phase.holder
        shared = Counter(
            symbol
            for arm in phase.arms
            for symbol in dict.fromkeys(symbol for symbol, _ in arm.chain[1:-1])
            if self._names[symbol] == {phase.name} and _owner(symbol) not in self._runners
        )
        best, count = max(shared.items(), key=lambda item: item[1], default=("", 0))
        return best if 2 * count > len(phase.arms) else phase.holder

    def _add_chain(self, chain: list[str], kind: SinkKind) -> None:
        self._add(chain[-1], Role.SINK)
        self._sinks.setdefault(chain[-1], set()).add(kind)
        carried = set()
        for symbol in chain:
            owner = _owner(symbol)
            if owner in self._runners and owner not in carried:
                carried.add(owner)
                self._add(symbol, Role.PASS)

    def _add(self, symbol: str, role: Role) -> None:
        for each in (symbol, *self._overrides(symbol)):
            self._roles.setdefault(each, set()).add(role)

    def _overrides(self, symbol: str) -> Iterator[str]:
        owner, method = _owner(symbol), symbol.rpartition(".")[2]
        for record in self._map.classes:
            if owner in record.mro and record.id != owner and method in dict(record.methods):
                yield f"{record.id}.{method}"

    def targets(self) -> Iterator[Target]:
        """Yield the functions by file and name, numbered from 1."""
        for number, symbol in enumerate(sorted(self._roles), 1):
            yield self._target(number, symbol)

    def _target(self, number: int, symbol: str) -> Target:
        asked = sorted(self._asked.get(symbol, {}).values(), key=lambda d: d.span)
        kinds = self._sinks.get(symbol, set())
        span = self._spans.get(symbol, Span(file_of(symbol), 0, 0))
        return Target(
            id=number,
            module=module_of(file_of(symbol)),
            qualname=qualname_of(symbol),
            file=file_of(symbol),
            line=span.line,
            end_line=span.end_line,
            roles=tuple(role for role in Role if role in self._roles[symbol]),
            sink=next((kind for kind in SinkKind if kind in kinds), None),
            expressions=tuple(
                dict.fromkeys((d.span.line, d.span.end_line) for d in asked if d.kind == "route")
            ),
            terms=tuple(
                PlanTerm(t.span.line, t.text, t.graph_when) for d in asked for t in d.terms
            ),
        )


def _accepts(names: TraceNames, last: int) -> Iterator[Accept]:
    for number, call in enumerate(names.accept_calls, last + 1):
        module, _, qualname = call.partition(":")
        yield Accept(number, module, qualname, names.accept_requests, names.accept_tokens)


def _syncs(code_map: CodeMap) -> Iterator[SyncSite]:
    found = {s.span: s for s in code_map.syncs if s.kind is not SyncKind.NONE and s.workers}
    for span in sorted(found):
        sync = found[span]
        yield SyncSite(span.file, span.line, span.end_line, f"{sync.operation} ({sync.label})")


def _running(worker: Worker) -> Iterator[Phase]:
    return (phase for phase in worker.phases if phase.arms)


def _owner(symbol: str) -> str:
    """Return the id of the class that a method belongs to, "" for a function."""
    head, dot, _ = symbol.rpartition(".")
    return head if dot and "::" in head else ""


def _telling(worker: Worker) -> Iterator[str]:
    """Yield what tells phases apart that one method holds in the same forward mode."""
    phases = list(_running(worker))
    for phase in phases:
        for other in phases:
            alike = other.holder == phase.holder and set(other.forward_modes) & set(
                phase.forward_modes
            )
            if other is not phase and alike:
                theirs = {symbol for arm in other.arms for symbol, _ in arm.chain}
                for arm in phase.arms:
                    own = next((s for s, _ in arm.chain if s not in theirs), None)
                    if own is not None:
                        yield own


def entry_symbol(worker: Worker) -> str:
    """Return the symbol of the method that the scheduler calls on a worker."""
    assert worker.entry is not None
    holder, name = worker.entry.holder, worker.entry.name
    return holder if holder.endswith(f".{name}") else f"{holder}.{name}"


def _worker(worker: Worker, ids: Mapping[str, int], roles: _Roles) -> PlanWorker:
    phases = []
    for phase in _running(worker):
        chains = {
            tuple(dict.fromkeys(ids[symbol] for symbol, _ in arm.chain if symbol in ids))
            for arm in phase.arms
        }
        phases.append(
            PlanPhase(
                phase.name.value, phase.role, ids[phase.holder], ids[roles.scope(worker, phase)],
                phase.forward_modes, tuple(sorted(chains)),
            )
        )  # fmt: skip
    return PlanWorker(worker.name, ids[entry_symbol(worker)], tuple(phases))


def module_of(file: str) -> str:
    """Return the dotted name of a file's module."""
    return file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
