"""Narrow a code map to some workers and phases."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from specmap.codemap.graph import Attribute, CallEdge, CodeMap, Phase, Worker
from specmap.codemap.source import file_of, qualname_of, symbol_id
from specmap.codemap.verdict import PhaseName


def narrow(codemap: CodeMap, workers: Sequence[str], phases: Sequence[str]) -> CodeMap:
    """Return the part of the map that belongs to these workers and phases.

    Empty means all. Workers are named by class name or symbol id, phases by
    :class:`PhaseName` value; a name that is not there selects nothing. ``problems`` and
    ``files`` are always kept whole.
    """
    if not workers and not phases:
        return codemap
    names = frozenset(phase for phase in PhaseName if not phases or phase.value in phases)
    kept = tuple(
        replace(worker, phases=tuple(p for p in worker.phases if p.name in names))
        for worker in codemap.workers
        if not workers or worker.name in workers or worker.id in workers
    )
    return _cut(codemap, kept, _scope(codemap, kept, names))


def entry_symbol(worker: Worker) -> str | None:
    """Return the symbol of the worker's entry method, or None without an entry."""
    if worker.entry is None:
        return None
    holder, name = worker.entry.holder, worker.entry.name
    return holder if qualname_of(holder).endswith(f".{name}") else f"{holder}.{name}"


def class_of(symbol: str) -> str:
    """Return the id of the class that a method stands in; a plain function's own module."""
    owner = qualname_of(symbol).rpartition(".")[0]
    return symbol_id(file_of(symbol), owner) if owner else file_of(symbol)


def chain_symbols(phases: Iterable[Phase]) -> set[str]:
    """Return every function on a chain of these phases."""
    return {symbol for phase in phases for arm in phase.arms for symbol, _ in arm.chain}


@dataclass(frozen=True, slots=True)
class _Scope:
    """What belongs to the chosen workers and phases, as sets to look things up in."""

    workers: frozenset[str]
    phases: frozenset[str]
    whole_cycle: bool
    entries: frozenset[str]
    chains: frozenset[str]
    own_classes: frozenset[str]

    def holds(self, workers: Iterable[str], phases: Iterable[str]) -> bool:
        """Whether a record of these workers and phases is in the scope."""
        mine = not self.workers.isdisjoint(workers)
        return mine and (self.whole_cycle or not self.phases.isdisjoint(phases))


def _scope(codemap: CodeMap, workers: tuple[Worker, ...], phases: frozenset[PhaseName]) -> _Scope:
    own = {name for worker in workers for name in (worker.id, *worker.mro, *worker.owns)}
    bases = {base for record in codemap.classes if record.id in own for base in record.mro}
    return _Scope(
        workers=frozenset(name for worker in workers for name in (worker.id, worker.name)),
        phases=frozenset(phases),
        whole_cycle=phases == frozenset(PhaseName),
        entries=frozenset(entry for worker in workers if (entry := entry_symbol(worker))),
        chains=frozenset(chain_symbols(phase for worker in workers for phase in worker.phases)),
        own_classes=frozenset(own | bases),
    )


def _edges(codemap: CodeMap, scope: _Scope) -> tuple[CallEdge, ...]:
    """Keep the calls into the entries, and the calls of the phases that these can reach."""
    taken = [edge for edge in codemap.edges if _in_phases(edge, scope)]
    reached = _reached(codemap, taken, scope)
    return tuple(
        edge
        for edge in codemap.edges
        if not scope.entries.isdisjoint(edge.callees)
        or (edge.caller in reached and _in_phases(edge, scope))
    )


def _in_phases(edge: CallEdge, scope: _Scope) -> bool:
    on_chain = edge.caller in scope.chains and not scope.chains.isdisjoint(edge.callees)
    return scope.whole_cycle or on_chain or not scope.phases.isdisjoint(edge.phases)


def _reached(codemap: CodeMap, edges: Iterable[CallEdge], scope: _Scope) -> set[str]:
    """Functions that calls can reach from the entries without entering a foreign worker."""
    after: dict[str, set[str]] = defaultdict(set)
    for edge in edges:
        after[edge.caller].update(edge.callees)
    drivers = {name for worker in codemap.workers for name in (worker.id, *worker.owns)}
    foreign = drivers - scope.own_classes
    reached = set(scope.entries | scope.chains)
    todo = list(reached)
    while todo:
        for symbol in after[todo.pop()] - reached:
            if class_of(symbol) not in foreign:
                reached.add(symbol)
                todo.append(symbol)
    return reached


def _cut(codemap: CodeMap, workers: tuple[Worker, ...], scope: _Scope) -> CodeMap:
    phases = [phase for worker in workers for phase in worker.phases]
    sink_ids = {arm.sink for phase in phases for arm in phase.arms}
    sinks = tuple(sink for sink in codemap.sinks if sink.id in sink_ids)
    decision_ids = {name for phase in phases for name in phase.decisions}
    decisions = tuple(d for d in codemap.decisions if d.id in decision_ids)
    edges = _edges(codemap, scope)
    functions = set(scope.chains).union(
        *((edge.caller, *edge.callees) for edge in edges),
        (sink.holder for sink in sinks),
        (decision.holder for decision in decisions),
    )
    classes = {class_of(symbol) for symbol in functions} | scope.own_classes
    return replace(
        codemap,
        workers=workers,
        classes=tuple(record for record in codemap.classes if record.id in classes),
        functions=tuple(f for f in codemap.functions if f.id in functions),
        edges=edges,
        decisions=decisions,
        sinks=sinks,
        flags=tuple(f for f in codemap.flags if scope.holds(f.workers, (f.phase,))),
        syncs=tuple(
            s for s in codemap.syncs if scope.holds(s.workers, s.phase_between.split("->"))
        ),
        attributes=_attributes(codemap, scope, classes),
        factories=tuple(
            f for f in codemap.factories if any(name in scope.workers for name, _ in f.arms)
        ),
        shared=tuple(code for code in codemap.shared if code.function in functions),
        doubles=tuple(d for d in codemap.doubles if scope.holds((d.worker,), (d.phase,))),
    )


def _attributes(codemap: CodeMap, scope: _Scope, classes: set[str]) -> tuple[Attribute, ...]:
    owners = {qualname_of(name) for name in classes}
    return tuple(
        attribute
        for attribute in codemap.attributes
        if attribute.name.rpartition(".")[0] in owners
        or any(not scope.own_classes.isdisjoint(store.types) for store in attribute.assignments)
    )
