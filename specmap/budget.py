"""The budget of a decode cycle: what it yields, what it costs, and what would pay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from specmap.codemap.event import Budget, PhaseStats, RankRun, Run, State
from specmap.codemap.outcome import CYCLE
from specmap.codemap.verdict import PhaseName

_NOT_REPLAYED = (State.EAGER, State.PARTIAL)
_SECOND_NS = 1e9


def budgeted(
    run: Run,
    width_settings: Sequence[str],
    *,
    baseline_tps: float | None = None,
    other: Run | None = None,
) -> Run:
    """Return the run with its budget, taken from the rank that saw the most decode cycles.

    ``baseline_tps`` is plain decoding's tokens a second at the same load. ``other`` is a run
    with another number of verify tokens (one of ``width_settings``): the two give the fixed
    and the per-token part of a verify pass. Without decode cycles there is no budget.
    """
    rank = fullest(run)
    if rank is None or rank.decode.median_ns is None:
        return run
    cycle_ns, requests = rank.decode.median_ns, rank.decode.requests
    accepted = rank.accept.tokens / rank.accept.steps if rank.accept.steps else 0.0
    notes = [] if accepted else ["SGLang's count of accepted tokens was not seen"]
    made = Budget(
        cycle_ns=cycle_ns,
        requests=requests,
        tokens_per_cycle=accepted,
        bound_tps=accepted / cycle_ns * _SECOND_NS,
        baseline_tps=baseline_tps,
        break_even=_break_even(baseline_tps, cycle_ns, requests),
    )
    made = _replayed(made, rank)
    if other is not None:
        parts = _verify_parts(rank, fullest(other), width_settings)
        if parts is None:
            notes.append(
                "the two runs do not tell the parts of a verify pass apart: both need verify "
                "passes and a different number of draft tokens"
            )
        else:
            made = replace(made, verify_fixed_ns=parts[0], verify_token_ns=parts[1])
    return replace(run, budget=replace(made, note="; ".join(notes)))


def fullest(run: Run) -> RankRun | None:
    """Return the rank that saw the most decode cycles, None where none saw any."""
    ranks = [rank for rank in run.ranks if rank.decode.count]
    return max(ranks, key=lambda rank: rank.decode.count) if ranks else None


def _break_even(baseline_tps: float | None, cycle_ns: int, requests: float) -> float | None:
    """Return the tokens a request and cycle at which plain decoding yields as much."""
    if baseline_tps is None or not requests:
        return None
    return baseline_tps * cycle_ns / _SECOND_NS / requests


def _replayed(made: Budget, rank: RankRun) -> Budget:
    """Add the bound if the cycle's eager phases took the time of their own replays."""
    saved, sure = 0, True
    for phase in rank.phases:
        if phase.phase in CYCLE and phase.state in _NOT_REPLAYED:
            saved += phase.median_cpu_ns - (phase.median_replay_ns or 0)
            sure = sure and phase.median_replay_ns is not None
    if saved <= 0 or saved >= made.cycle_ns:
        return made
    faster = made.tokens_per_cycle / (made.cycle_ns - saved) * _SECOND_NS
    return replace(made, replayed_tps=faster, replayed_sure=sure)


def _verify_parts(
    one: RankRun, other: RankRun | None, settings: Sequence[str]
) -> tuple[float, float] | None:
    """Return the fixed part of a verify pass and that of one token of a request, in ns."""
    if other is None:
        return None
    widths, times = (_width(one, settings), _width(other, settings)), (_verify(one), _verify(other))
    if None in widths or None in times or widths[0] == widths[1]:
        return None
    first, second = times
    assert first is not None and second is not None
    assert widths[0] is not None and widths[1] is not None
    if (first.gpu_passes > 0) is not (second.gpu_passes > 0):
        return None
    slope = (_time(second) - _time(first)) / (widths[1] - widths[0])
    return _time(first) - slope * widths[0], slope


def _width(rank: RankRun, settings: Sequence[str]) -> int | None:
    values = [rank.arguments.get(setting) for setting in settings]
    return next((value for value in values if isinstance(value, int)), None)


def _verify(rank: RankRun) -> PhaseStats | None:
    return next((p for p in rank.phases if p.phase == PhaseName.VERIFY and p.passes), None)


def _time(phase: PhaseStats) -> float:
    """Return the mean GPU time of a pass where it was measured, else the median CPU time."""
    return phase.gpu_ns / phase.gpu_passes if phase.gpu_passes else phase.median_cpu_ns
