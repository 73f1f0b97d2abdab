"""Compares two maps: workers, phases, decisions, synchronisations, names."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from posixpath import dirname

from specmap.codemap.graph import CodeMap, HostSync, Phase, SyncKind, Worker
from specmap.codemap.source import Span, canonical, file_of, qualname_of
from specmap.codemap.verdict import PhaseName, SinkKind, Verdict
from specmap.compare.matching import Key, pair, renamed, shape, skeleton
from specmap.compare.model import (
    UNKNOWN,
    Change,
    DecisionChange,
    MapDiff,
    NameChange,
    PhaseChange,
    SyncChange,
    Turn,
    WorkerChange,
)
from specmap.compare.renames import Renames, alike, find_renames
from specmap.compare.runners import backend_changes, file_changes, method_changes
from specmap.compare.terms import decision_changes
from specmap.compare.untold import told, untold

_KINDS = ("can_run", "capture", "route")
_URGENT = (PhaseName.VERIFY, PhaseName.DRAFT_EXTEND, PhaseName.DRAFT)
# A worker that goes while one comes with this much of its name has become that one.
_HEIR = 0.9
# A name that shares less than this with its old one is no news, it may be a coincidence.
_ALIKE = 0.4

_Pairs = Sequence[tuple[Worker, Worker]]


def compare_maps(old: CodeMap, new: CodeMap) -> MapDiff:
    """Return what changed from ``old`` to ``new``; what only moved did not change."""
    renames = find_renames(old, new)
    pairs, gone, come = paired_workers(old, new, renames)
    folders = {dirname(worker.span.file) for worker in (*old.workers, *new.workers)}
    unpaired = {worker.id for worker in (*gone, *come)}
    alone = {dirname(w.span.file) for w in (*gone, *come)}
    alone -= {dirname(w.span.file) for both in pairs for w in both}
    syncs = _sync_changes(old, new, renames, unpaired, alone)
    decisions = list(decision_changes(old, new, pairs, renames))
    return MapDiff(
        old=old.target,
        new=new.target,
        workers=tuple(_worker_changes(pairs, gone, come)),
        phases=tuple(sorted(_phase_changes(pairs, (old, new), renames), key=_phase_order)),
        decisions=tuple(sorted(decisions, key=_decision_order)),
        types=tuple(backend_changes(old, new, pairs, renames)),
        syncs=tuple(sorted(syncs, key=lambda change: _sync_order(change, folders))),
        names=(
            *file_changes(old, new, renames, decisions),
            *method_changes(old, new, renames),
            *_name_changes(renames, {was.name for was, _ in pairs}),
        ),
    )


def paired_workers(
    old: CodeMap, new: CodeMap, renames: Renames
) -> tuple[list[tuple[Worker, Worker]], list[Worker], list[Worker]]:
    """Pair the workers that a server can get to: by name, by rename, by most of the name."""
    keys: list[Key[Worker, Worker]] = [
        (lambda worker: worker.name, lambda worker: worker.name),
        (lambda worker: renames.classes.get(worker.name), lambda worker: worker.name),
    ]
    before = [worker for worker in old.workers if worker.reachable]
    after = [worker for worker in new.workers if worker.reachable]
    pairs, gone, come = pair(before, after, keys)
    anything: Key[Worker, Worker] = (lambda _worker: True, lambda _worker: True)
    heirs, gone, come = pair(gone, come, [anything], lambda a, b: alike(a.name, b.name) >= _HEIR)
    return [*pairs, *heirs], gone, come


def _worker_changes(
    pairs: _Pairs, gone: Sequence[Worker], come: Sequence[Worker]
) -> Iterator[WorkerChange]:
    yield from (WorkerChange(Change.REMOVED, worker.name, worker.span) for worker in gone)
    yield from (WorkerChange(Change.ADDED, worker.name, worker.span) for worker in come)
    for was, now in pairs:
        if was.name != now.name:
            yield WorkerChange(Change.RENAMED, now.name, now.span, was.name)


def _phases(pairs: _Pairs) -> Iterator[tuple[Worker, Phase, Phase]]:
    """Yield every phase that both maps have, with its worker in the new one."""
    for was, now in pairs:
        before = {phase.name: phase for phase in was.phases}
        for phase in now.phases:
            if phase.name in before:
                yield now, before[phase.name], phase


def _phase_changes(
    pairs: _Pairs, maps: tuple[CodeMap, CodeMap], renames: Renames
) -> Iterator[PhaseChange]:
    held = frozenset(renames.qualname(qualname_of(f.id)) for f in maps[0].functions)
    found: dict[tuple[PhaseName, tuple[str, ...], tuple[str, ...]], list[tuple[str, Span]]]
    found = defaultdict(list)
    turns: dict[tuple[PhaseName, tuple[str, ...], tuple[str, ...]], set[Turn]] = defaultdict(set)
    for worker, was, now in _phases(pairs):
        before, after = _ways(told(was)), _ways(told(now))
        if before == after:
            continue
        graph, goes = SinkKind.GRAPH.value, bool(told(now).arms)
        vanished = not goes or (graph in before and graph not in after)
        if vanished and told(was).arms and untold(was, now, maps, renames):
            after = (*(after if goes else ()), UNKNOWN)
        found[now.name, before, after].append((worker.name, now.span))
        turns[now.name, before, after].update(_turns(was, now, held, renames))
    for (name, before, after), places in found.items():
        workers = tuple(sorted(worker for worker, _ in places))
        made = PhaseChange(name, workers, before, after, min(span for _, span in places))
        where = sorted(turns[name, before, after], key=lambda turn: (turn.span, turn.callee))
        yield replace(made, turns=tuple(where) if made.lost else ())


def _turns(was: Phase, now: Phase, held: frozenset[str], renames: Renames) -> Iterator[Turn]:
    """Yield the first call of each new way that no old way made, in a function of ``held``.

    ``held`` are the functions of the old map, as the new one names them.
    """
    calls = {
        (renames.qualname(qualname_of(a)), renames.qualname(qualname_of(b)))
        for arm in was.arms
        for (a, _), (b, _) in pairwise(arm.chain)
    }
    for arm in now.arms:
        for (holder, line), (called, _) in pairwise(arm.chain):
            caller, callee = qualname_of(holder), qualname_of(called)
            if (caller, callee) in calls:
                continue
            if caller in held:
                span = Span(file_of(holder), line, line)
                yield Turn(caller, callee, span, callee not in held)
            break


def _ways(phase: Phase) -> tuple[str, ...]:
    if phase.verdict is Verdict.NOT_RUN or not phase.arms:
        return ("not run",)
    kinds = {arm.kind for arm in phase.arms}
    return tuple(kind.value for kind in SinkKind if kind in kinds)


def _sync_changes(
    old: CodeMap, new: CodeMap, renames: Renames, unpaired: set[str], alone: set[str]
) -> Iterator[SyncChange]:
    def old_holder(sync: HostSync) -> str:
        return renames.qualname(qualname_of(sync.holder))

    def old_text(sync: HostSync) -> str:
        return renamed(canonical(sync.operation), renames.everything)

    def text(sync: HostSync) -> str:
        return canonical(sync.operation)

    keys: list[Key[HostSync, HostSync]] = [
        (lambda s: (old_holder(s), old_text(s)), lambda s: (qualname_of(s.holder), text(s))),
        (
            lambda s: (old_holder(s), shape(old_text(s))),
            lambda s: (qualname_of(s.holder), shape(text(s))),
        ),
        (old_text, text),
        (
            lambda s: (old_holder(s), s.rule, skeleton(text(s))),
            lambda s: (qualname_of(s.holder), s.rule, skeleton(text(s))),
        ),
    ]
    _, removed, added = pair(_syncs(old), _syncs(new), keys)
    yield from (_sync(Change.REMOVED, sync, unpaired, alone) for sync in removed)
    yield from (_sync(Change.ADDED, sync, unpaired, alone) for sync in added)


def _syncs(codemap: CodeMap) -> list[HostSync]:
    """Return the synchronisations; a name alone is one value of its function, used often."""
    met: dict[object, HostSync] = {}
    for sync in codemap.syncs:
        if sync.kind is not SyncKind.NONE:
            named = sync.operation.isidentifier()
            met.setdefault((sync.holder, sync.operation) if named else sync, sync)
    return list(met.values())


def _sync(change: Change, sync: HostSync, unpaired: set[str], alone: set[str]) -> SyncChange:
    """``unpaired`` are the workers that came or went, ``alone`` the folders of nobody else."""
    own = bool(sync.workers) and unpaired.issuperset(sync.workers)
    return SyncChange(
        change=change,
        operation=canonical(sync.operation),
        holder=qualname_of(sync.holder),
        label=sync.label,
        kind=sync.kind.value,
        between=sync.phase_between,
        captured=sync.captured,
        workers=tuple(sorted(map(qualname_of, sync.workers))),
        span=sync.span,
        with_worker=own or dirname(sync.span.file) in alone,
    )


def _name_changes(renames: Renames, workers: set[str]) -> Iterator[NameChange]:
    for was, now in renames.classes.items():
        if was not in workers:
            yield NameChange("class", was, now)
    for was, now in renames.functions.items():
        yield NameChange("function", was, now)
    near = {was: alike(was, now) for was, now in renames.attributes.items()}
    for was in sorted(near, key=lambda name: (-near[name], name)):
        if near[was] >= _ALIKE:
            yield NameChange("name", was, renames.attributes[was])


def _urgency(phases: Sequence[PhaseName]) -> int:
    return min((_URGENT.index(p) for p in phases if p in _URGENT), default=len(_URGENT))


def _phase_order(change: PhaseChange) -> tuple[object, ...]:
    """A graph lost comes before one gained, verify before the others."""
    return (not change.lost, not change.gained, _urgency((change.phase,)), change.workers)


def _decision_order(change: DecisionChange) -> tuple[object, ...]:
    """Errors first; then what is tested anew; verify before the others; new spellings last."""
    errors = any(term.error for term in change.terms)
    whole = change.change is not Change.CHANGED
    spelling = all(term.change is Change.RENAMED for term in change.terms)
    return (not errors, spelling, whole, _KINDS.index(change.kind), _urgency(change.phases),
            -len(change.workers), len(change.phases), change.change, change.holder)  # fmt: skip


def _sync_order(change: SyncChange, folders: set[str]) -> tuple[object, ...]:
    """In a captured region first, then in the workers' own files, removable, near verify."""
    rare = change.label not in ("removable", "unavoidable")
    return (change.with_worker, not change.captured, dirname(change.span.file) not in folders,
            rare, change.label != "removable", not change.between.startswith("verify"),
            -len(change.workers), change.span, change.change, change.operation)  # fmt: skip
