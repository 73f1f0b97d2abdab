from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

import pytest

from specmap.codemap.event import Agreement, Joined, Run, RunProblem, SizeCount, State
from specmap.codemap.graph import CodeMap
from specmap.codemap.outcome import BatchRange, Outcome, PhaseOutcome
from specmap.codemap.verdict import PhaseName, Verdict
from specmap.join import joined
from tests.report.sample_outcome import outcome
from tests.report.sample_run import phase, rank
from tests.small_map import small_map


def ran(name: str, counts: Mapping[State, int], sizes: tuple[SizeCount, ...] = ()) -> Run:
    """A run of EAGLEWorker with one phase on two ranks."""
    seen = replace(phase(name), counts=counts, sizes=sizes)
    return Run("0.5.9", (), (rank(0, seen), rank(1, seen)), ())


def static(verdict: Verdict | None) -> CodeMap:
    """A map in which EAGLEWorker's verify has this verdict."""
    base = small_map()
    phases = tuple(replace(p, verdict=verdict) for p in base.workers[0].phases)
    return replace(base, workers=(replace(base.workers[0], phases=phases), base.workers[1]))


def judged(*ranges: tuple[int, int | None, Verdict]) -> Outcome:
    """An outcome in which EAGLEWorker's verify ends by batch size."""
    base = outcome()
    parts = tuple(BatchRange(*part) for part in ranges)
    verify = PhaseOutcome(
        PhaseName.VERIFY, "target", parts[0].verdict, "h", base.workers[0].span, parts
    )
    return replace(base, workers=(replace(base.workers[0], name="EAGLEWorker", phases=(verify,)),))


def verify_row(run: Run) -> Joined:
    return next(row for row in run.joined if row.phase == "verify")


@pytest.mark.parametrize(
    ("verdict", "counts", "agreement"),
    [
        (Verdict.GRAPH, {State.GRAPH: 9}, Agreement.AGREE),
        (Verdict.PIECEWISE, {State.GRAPH: 9}, Agreement.AGREE),
        (Verdict.EAGER, {State.EAGER: 9}, Agreement.AGREE),
        (Verdict.GRAPH, {State.GRAPH: 9, State.CAPTURE: 1}, Agreement.AGREE),
        (Verdict.GRAPH, {State.GRAPH: 9, State.EAGER: 1}, Agreement.CONTRADICT),
        (Verdict.EAGER, {State.GRAPH: 9}, Agreement.CONTRADICT),
        (Verdict.GRAPH, {State.PARTIAL: 9}, Agreement.CONTRADICT),
        (Verdict.NOT_RUN, {State.GRAPH: 1}, Agreement.CONTRADICT),
        (Verdict.UNKNOWN, {State.GRAPH: 1}, Agreement.OPEN),
        (None, {State.GRAPH: 1}, Agreement.OPEN),
        (Verdict.GRAPH, {State.CAPTURE: 2}, Agreement.NOT_EXERCISED),
    ],
)
def test_a_verdict_of_the_map_beside_what_ran(
    verdict: Verdict | None, counts: Mapping[State, int], agreement: Agreement
) -> None:
    assert verify_row(joined(ran("verify", counts), static(verdict))).agreement is agreement


def test_counts_of_all_ranks_stand_in_one_row() -> None:
    found = verify_row(joined(ran("verify", {State.GRAPH: 9}), static(Verdict.GRAPH)))
    assert dict(found.observed) == {State.GRAPH: 18}


@pytest.mark.parametrize(
    ("verdict", "agreement"),
    [(Verdict.GRAPH, Agreement.NOT_EXERCISED), (Verdict.NOT_RUN, Agreement.AGREE)],
)
def test_a_phase_that_did_not_run(verdict: Verdict, agreement: Agreement) -> None:
    found = joined(ran("draft", {State.GRAPH: 1}), static(verdict))
    assert verify_row(found).agreement is agreement


@pytest.mark.parametrize(
    ("sizes", "agreement", "note"),
    [
        ([(1, State.GRAPH), (2, State.GRAPH)], Agreement.AGREE, ""),
        ([(2, State.GRAPH), (4, State.EAGER)], Agreement.AGREE, ""),
        ([(1, State.EAGER), (2, State.GRAPH)], Agreement.CONTRADICT,
         "10 EAGER at a batch of 1 where the source says GRAPH"),
        ([(2, State.GRAPH), (4, State.GRAPH)], Agreement.CONTRADICT,
         "10 GRAPH at a batch of 4 where the source says EAGER"),
        ([(2, State.GRAPH), (90, State.EAGER)], Agreement.OPEN,
         "the source does not settle a batch of 90"),
        ([(1, State.EAGER), (90, State.EAGER)], Agreement.CONTRADICT,
         "10 EAGER at a batch of 1 where the source says GRAPH"),
    ],
)  # fmt: skip
def test_each_batch_size_has_the_verdict_that_the_launch_gives_it(
    sizes: list[tuple[int, State]], agreement: Agreement, note: str
) -> None:
    """bs 1-2 replay, bs 3-48 are larger than any captured one, above nobody knows."""
    said = judged((1, 2, Verdict.GRAPH), (3, 48, Verdict.EAGER), (49, None, Verdict.UNKNOWN))
    parts = tuple(SizeCount(size, state, 5) for size, state in sizes)
    counts = Counter[State]()
    for part in parts:
        counts[part.state] += part.passes
    found = verify_row(joined(ran("verify", counts, parts), static(None), said))
    assert (found.agreement, found.note) == (agreement, note)


def test_a_contradiction_is_a_finding_that_counts() -> None:
    found = joined(ran("verify", {State.EAGER: 9}), static(Verdict.GRAPH))
    (finding,) = found.findings
    assert (finding.problem, finding.failing) == (RunProblem.CONTRADICTION, True)
    assert finding.message == "EAGLEWorker.verify: 18 EAGER where the source says GRAPH"
    assert joined(ran("verify", {State.GRAPH: 9}), static(Verdict.GRAPH)).findings == ()


def test_a_worker_that_the_launch_did_not_select_is_judged_by_the_map() -> None:
    said = replace(outcome(), workers=())
    found = joined(ran("verify", {State.GRAPH: 9}), static(Verdict.GRAPH), said)
    assert verify_row(found).agreement is Agreement.AGREE


def test_a_phase_that_the_map_does_not_have_is_open() -> None:
    found = joined(ran("unknown", {State.EAGER: 9}), static(Verdict.GRAPH))
    row = next(row for row in found.joined if row.phase == "unknown")
    assert (row.agreement, row.note) == (Agreement.OPEN, "the map has no such phase")
