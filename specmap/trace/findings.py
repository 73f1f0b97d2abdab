"""What stands out in a run, the worst first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from specmap.codemap.event import (
    UNKNOWN_PHASE,
    PhaseStats,
    RankRun,
    RunFinding,
    RunProblem,
    State,
)
from specmap.codemap.outcome import CYCLE
from specmap.codemap.verdict import SinkKind
from specmap.trace.divergence import Member, Ranks, compare, title, titles, told_once
from specmap.trace.plan import Role, WrapPlan

_NOT_REPLAYED = (State.EAGER, State.PARTIAL)
_REPLAYED = (State.GRAPH, State.PIECEWISE)
_FEW = 0.01
_NOT_LOADED = "its module was not loaded"  # the agent's word for it
_ORDER = {problem: index for index, problem in enumerate(RunProblem)}


def findings_of(members: Sequence[Member], plan: WrapPlan, number: Ranks) -> tuple[RunFinding, ...]:
    """Return the findings of a run."""
    ranks = [member.rank for member in members]
    found = [
        *_no_cycle(ranks, plan),
        *compare(members, number),
        *_eager_phases(ranks, plan),
        *_doubtful(ranks, plan),
    ]
    told = {(f.phase, r) for f in found if f.problem is RunProblem.RANK_EAGER for r in f.ranks}
    kept = [
        f for f in found
        if f.problem is not RunProblem.PHASE_EAGER or not {(f.phase, r) for r in f.ranks} <= told
    ]  # fmt: skip
    once = told_once(kept, ranks)
    return tuple(sorted(once, key=lambda f: (not f.failing, _ORDER[f.problem])))


def _no_cycle(ranks: Sequence[RankRun], plan: WrapPlan) -> Iterator[RunFinding]:
    if not any(rank.cycles for rank in ranks):
        yield RunFinding(
            RunProblem.NO_CYCLE, f"no speculative cycle was seen; {_likely(ranks, plan)}"
        )
    elif not any(p.phase in CYCLE and p.passes for rank in ranks for p in rank.phases):
        yield RunFinding(
            RunProblem.NO_CYCLE,
            "no decode cycle was seen, only prefill: the server had nothing to decode, or it hangs",
        )


def _likely(ranks: Sequence[RankRun], plan: WrapPlan) -> str:
    """Say what is the most likely reason for a run without a cycle."""
    if not ranks:
        return (
            "no rank wrote a log: no scheduler started, or its environment was dropped on the way"
        )
    if all(rank.cut_short for rank in ranks):
        return ranks[0].cut_short
    entries = [f"{t.module}.{t.qualname}" for t in plan.targets if Role.ENTRY in t.roles]
    missing = {symbol: why for rank in ranks for symbol, why in rank.missing}
    absent = [symbol for symbol in entries if missing.get(symbol, _NOT_LOADED) != _NOT_LOADED]
    if absent or not any(rank.wrapped for rank in ranks):
        symbol, why = next(((s, missing[s]) for s in absent), next(iter(missing.items()), ("", "")))
        named = f"{symbol} could not be wrapped ({why})" if symbol else "nothing could be wrapped"
        return f"{named}: is this the SGLang that the plan was made for?"
    if entries and all(symbol in missing for symbol in entries):
        return (
            "no worker of the plan was loaded: the server does not speculate, or its worker is "
            "not in the map"
        )
    return "the ranks were ready and no worker was called: no request was sent"


def could_replay(plan: WrapPlan, worker: str, phase: str) -> bool:
    """Whether the plan has a graph for a phase of a worker."""
    kinds = {target.id: target.sink for target in plan.targets}
    graph = (SinkKind.GRAPH, SinkKind.PIECEWISE)
    return any(
        kinds.get(chain[-1]) in graph
        for w in plan.workers if w.name == worker
        for p in w.phases if p.name == phase
        for chain in p.chains
    )  # fmt: skip


def _eager_phases(ranks: Sequence[RankRun], plan: WrapPlan) -> Iterator[RunFinding]:
    """Yield the phases of the decode cycle that could replay and did not."""
    named: dict[tuple[str, str], list[tuple[RankRun, PhaseStats]]] = {}
    for rank in ranks:
        for phase in rank.phases:
            eager = sum(phase.counts.get(state, 0) for state in _NOT_REPLAYED)
            if eager and phase.phase in CYCLE and could_replay(plan, phase.worker, phase.phase):
                named.setdefault((phase.worker, phase.phase), []).append((rank, phase))
    for (worker, name), found in named.items():
        rank, phase = found[0]
        eager = sum(phase.counts.get(state, 0) for state in _NOT_REPLAYED)
        lasting = phase.state in _NOT_REPLAYED or eager > _FEW * phase.passes
        why = f": {phase.reasons[0].text}" if phase.reasons else ""
        yield RunFinding(
            RunProblem.PHASE_EAGER,
            f"{worker}.{name} ran eager in {eager} of {phase.passes} passes{why}{_switch(phase)}",
            tuple(r.name for r, _ in found),
            name,
            next((s.first for s in phase.stretches if s.state in _NOT_REPLAYED), None),
            failing=lasting,
        )


def _switch(phase: PhaseStats) -> str:
    """Say from which cycle on a phase replays, where it did not always."""
    last = phase.stretches[-1] if len(phase.stretches) > 1 else None
    return f"; from cycle {last.first} on {last.state.value}" if last is not None else ""


def _doubtful(ranks: Sequence[RankRun], plan: WrapPlan) -> Iterator[RunFinding]:
    yield from _lossy([rank for rank in ranks if rank.lost])
    for rank in ranks:
        if rank.cut_bytes:
            yield RunFinding(
                RunProblem.LOSS,
                f"{title(rank)}: the log is cut off in the middle of a record, which is left out",
                (rank.name,), failing=False,
            )  # fmt: skip
        yield from _unknown(rank)
        yield from _unwrapped(rank, plan)
        for fault in rank.faults:
            yield RunFinding(
                RunProblem.FAULT, f"{title(rank)}: {fault}", (rank.name,), failing=False
            )


def _lossy(ranks: Sequence[RankRun]) -> Iterator[RunFinding]:
    if not ranks:
        return
    lost = f"{titles(ranks)} lost {sum(rank.lost for rank in ranks)} records"
    first = min((r.first_loss for r in ranks if r.first_loss is not None), default=None)
    said = (
        f"{lost} from cycle {first} on (its ring was full): its later counts are too low, and "
        "others are compared with it up to that cycle"
    ) if len(ranks) == 1 else (
        f"{lost}, the first of them in cycle {first} (their rings were full): later counts are too "
        "low, and a rank is compared with others up to its first loss"
    )  # fmt: skip
    yield RunFinding(
        RunProblem.LOSS, said, tuple(rank.name for rank in ranks), cycle=first, failing=False
    )


def _unknown(rank: RankRun) -> Iterator[RunFinding]:
    for phase in rank.phases:
        if phase.phase == UNKNOWN_PHASE:
            yield RunFinding(
                RunProblem.UNKNOWN_PATH,
                f"{title(rank)}: {phase.passes} forwards of {phase.worker} came on a way that the "
                "map does not have",
                (rank.name,), UNKNOWN_PHASE, failing=False,
            )  # fmt: skip
        replays = sum(phase.counts.get(state, 0) for state in _REPLAYED)
        if replays and not phase.replays:
            yield RunFinding(
                RunProblem.UNKNOWN_PATH,
                f"{title(rank)}: {phase.phase} went to its graph runner {replays} times, and no "
                "graph launch was seen there",
                (rank.name,), phase.phase, failing=False,
            )  # fmt: skip


def _unwrapped(rank: RankRun, plan: WrapPlan) -> Iterator[RunFinding]:
    """Yield what could not be wrapped, of the workers that ran."""
    ran = {phase.worker for phase in rank.phases}
    ids = {
        i for w in plan.workers if w.name in ran for p in w.phases for c in p.chains for i in c
    }  # fmt: skip
    needed = {f"{t.module}.{t.qualname}" for t in plan.targets if t.id in ids}
    missing = [(symbol, why) for symbol, why in rank.missing if symbol in needed]
    if missing:
        symbol, why = missing[0]
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        yield RunFinding(
            RunProblem.UNWRAPPED,
            f"{title(rank)}: not wrapped: {symbol} ({why}){more}; their passes are not counted",
            (rank.name,), failing=False,
        )  # fmt: skip
