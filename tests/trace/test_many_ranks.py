"""Logs of many ranks, repeated from a run of two H200: what is wrong is found in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.made_ranks import Flaws, Maker
from specmap.codemap.event import RunProblem, State
from specmap.traced import read_run
from tests.trace.recorded import write_pair

CYCLES = 400
MAKER = Maker()


def test_the_recorded_pair_did_the_same_in_every_cycle(tmp_path: Path) -> None:
    """SGLang counted 47 and 63 verify steps; both ranks were killed at the end of the engine."""
    write_pair(tmp_path)
    run = read_run(tmp_path)
    assert run.findings == ()
    assert [rank.cycles for rank in run.ranks] == [102, 85]
    for rank, steps in zip(run.ranks, (100, 83), strict=True):
        decode = [phase for phase in rank.phases if "prefill" not in phase.phase]
        assert [phase.phase for phase in decode] == ["draft", "verify", "draft_extend"]
        assert [phase.counts for phase in decode] == [{State.GRAPH: steps}] * 3


def test_a_healthy_run_of_eight_ranks_on_two_hosts(tmp_path: Path) -> None:
    MAKER.write(tmp_path, 8, CYCLES, Flaws())
    run = read_run(tmp_path)
    assert run.findings == ()
    assert {rank.cycles for rank in run.ranks} == {CYCLES}
    assert {rank.decode.count for rank in run.ranks} == {MAKER.decodes(0, CYCLES)}
    assert run.ranks_expected == 8


@pytest.mark.parametrize("ranks", [8, 20])
@pytest.mark.parametrize("since", [90, 207])
def test_the_eager_rank_is_named_first_whatever_else_is_wrong(
    tmp_path: Path, ranks: int, since: int
) -> None:
    """The dead rank and the one that lost records end in front of it, and hide nothing."""
    flaws = Flaws(eager=(5, since), dropped=(2, 40), dead=(6, 80))
    MAKER.write(tmp_path, ranks, CYCLES, flaws)
    run = read_run(tmp_path)
    first, second = run.findings[:2]
    assert (first.problem, first.ranks, first.phase, first.cycle) == (
        RunProblem.RANK_EAGER, ("rank-5-0-0-6",), "verify", since,
    )  # fmt: skip
    assert f"in {MAKER.decodes(since, CYCLES)} cycles, first in cycle {since}: " in first.message
    assert first.message.endswith("bs 4 > largest captured 2")
    assert (second.problem, second.ranks, second.cycle) == (
        RunProblem.RANK_MISSING, ("rank-6-0-0-7",), 80,
    )  # fmt: skip
    losses = {f.ranks for f in run.findings if f.problem is RunProblem.LOSS}
    assert losses == {("rank-2-0-0-3",), ("rank-6-0-0-7",)}
    assert sum(f.problem is RunProblem.RANK_EAGER for f in run.findings) == 1


def test_a_dead_rank_alone_on_its_host_is_told_by_its_cycles(tmp_path: Path) -> None:
    MAKER.write(tmp_path, 5, CYCLES, Flaws(dead=(4, 100)))
    (found,) = [f for f in read_run(tmp_path).findings if f.failing]
    assert (found.problem, found.ranks) == (RunProblem.RANK_MISSING, ("rank-4-0-0-5",))
    assert "after 100 cycles" in found.message


def test_a_rank_that_lost_records_is_not_compared_behind_them(tmp_path: Path) -> None:
    """Its own eager verify comes after the loss, where its cycle numbers are not sure."""
    MAKER.write(tmp_path, 4, CYCLES, Flaws(eager=(1, 200), dropped=(1, 100)))
    run = read_run(tmp_path)
    assert [f.problem for f in run.findings if f.problem is RunProblem.RANK_EAGER] == []
    assert any(f.problem is RunProblem.PHASE_EAGER and "verify" in f.message for f in run.findings)
