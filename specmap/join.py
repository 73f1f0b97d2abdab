"""Joins the halves: what the source says of a phase beside what the ranks did."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from specmap.codemap.event import (
    Agreement,
    Joined,
    Run,
    RunFinding,
    RunProblem,
    State,
)
from specmap.codemap.graph import CodeMap, Phase
from specmap.codemap.outcome import BatchRange, Outcome, PhaseOutcome
from specmap.codemap.verdict import Verdict

_REPLAYED = (State.GRAPH, State.PIECEWISE)
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class _Expected:
    verdict: Verdict
    note: str = ""
    ranges: tuple[BatchRange, ...] = ()


def joined(run: Run, code_map: CodeMap, outcome: Outcome | None = None) -> Run:
    """Return the run with each phase of its workers beside the static verdict.

    ``outcome`` is what the run's own launch command makes of the map; without one only
    phases whose verdict does not depend on the launch can agree or contradict.
    Contradictions become findings.
    """
    rows = tuple(_rows(run, code_map, outcome))
    against = [row for row in rows if row.agreement is Agreement.CONTRADICT]
    found = [
        RunFinding(
            RunProblem.CONTRADICTION,
            f"{row.worker}.{row.phase}: {row.note}",
            phase=row.phase,
        )
        for row in against
    ]
    order = list(RunProblem)
    findings = sorted(
        (*run.findings, *found), key=lambda f: (not f.failing, order.index(f.problem))
    )
    return replace(run, joined=rows, findings=tuple(findings))


def _rows(run: Run, code_map: CodeMap, outcome: Outcome | None) -> Iterator[Joined]:
    seen = _seen(run)
    for worker in sorted({name for name, _ in seen}):
        expected = dict(_expected(worker, code_map, outcome))
        for phase, said in expected.items():
            observed = seen.get((worker, phase), Counter())
            agreement, note = _agreement(said, observed)
            yield Joined(
                worker, phase, said.verdict, _by_state(observed), agreement, note or said.note
            )
        for name, phase in sorted(seen):
            if name == worker and phase not in expected:
                yield Joined(
                    worker, phase, Verdict.UNKNOWN, _by_state(seen[name, phase]),
                    Agreement.OPEN, "the map has no such phase",
                )  # fmt: skip


def _seen(run: Run) -> dict[tuple[str, str], Counter[tuple[int, State]]]:
    """Return passes of all ranks by batch size (-1: not known) and state."""
    found: dict[tuple[str, str], Counter[tuple[int, State]]] = {}
    for phase in (phase for rank in run.ranks for phase in rank.phases):
        counted = found.setdefault((phase.worker, phase.phase), Counter())
        sized: Counter[State] = Counter()
        for part in phase.sizes:
            counted[part.size, part.state] += part.passes
            sized[part.state] += part.passes
        for state, count in phase.counts.items():
            counted[-1, state] += count - sized[state]
    return {key: +counted for key, counted in found.items()}


def _by_state(observed: Mapping[tuple[int, State], int]) -> dict[State, int]:
    totals: Counter[State] = Counter()
    for (_, state), count in observed.items():
        totals[state] += count
    return {state: totals[state] for state in State if totals[state]}


def _expected(
    worker: str, code_map: CodeMap, outcome: Outcome | None
) -> Iterator[tuple[str, _Expected]]:
    """Yield each phase of a worker with its verdict."""
    for judged in outcome.workers if outcome is not None else ():
        if judged.name == worker:
            for phase in judged.phases:
                yield phase.name.value, _of_outcome(phase)
            return
    for known in code_map.workers:
        if known.name == worker:
            for static in known.phases:
                yield static.name.value, _of_map(static)
            return


def _of_outcome(phase: PhaseOutcome) -> _Expected:
    note = phase.note
    if phase.verdict is Verdict.UNKNOWN and phase.open_terms:
        note = f"settled by: {phase.open_terms[0].text}"
    return _Expected(phase.verdict, note, phase.ranges)


def _of_map(phase: Phase) -> _Expected:
    if phase.verdict is None:
        return _Expected(Verdict.UNKNOWN, "depends on the launch, which was not judged")
    return _Expected(phase.verdict, phase.note)


def _agreement(said: _Expected, observed: Mapping[tuple[int, State], int]) -> tuple[Agreement, str]:
    """Compare each batch size with the verdict for it."""
    ran = {key: count for key, count in observed.items() if key[1] is not State.CAPTURE}
    if not ran:
        fits = said.verdict is Verdict.NOT_RUN
        return (Agreement.AGREE if fits else Agreement.NOT_EXERCISED), ""
    against, unknown = [], []
    for (size, state), count in sorted(ran.items()):
        verdict = _verdict(said, size)
        if verdict is Verdict.UNKNOWN:
            unknown.append(size)
        if verdict is not Verdict.UNKNOWN and not _fits(state, verdict):
            at = f" at a batch of {size}" if size >= 0 and said.ranges else ""
            against.append(f"{count} {state.value}{at} where the source says {verdict.value}")
    if against:
        return Agreement.CONTRADICT, "; ".join(against[:_SHOWN])
    if not unknown:
        return Agreement.AGREE, ""
    sizes = ", ".join(str(size) for size in sorted(set(unknown)) if size >= 0)
    left = said.verdict is not Verdict.UNKNOWN and sizes
    return Agreement.OPEN, f"the source does not settle a batch of {sizes}" if left else ""


def _verdict(said: _Expected, size: int) -> Verdict:
    return next(
        (r.verdict for r in said.ranges if r.first <= size and (r.last is None or size <= r.last)),
        said.verdict,
    )


def _fits(state: State, verdict: Verdict) -> bool:
    """Whether a state is what a verdict means; a graph in pieces replays like a whole one."""
    if verdict in (Verdict.GRAPH, Verdict.PIECEWISE):
        return state in _REPLAYED
    return verdict is Verdict.EAGER and state is State.EAGER
