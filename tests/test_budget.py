from __future__ import annotations

from dataclasses import replace

import pytest

from specmap.budget import budgeted
from specmap.codemap.event import AcceptStats, Budget, CycleStats, PhaseStats, RankRun, Run, State
from tests.report.sample_run import EAGER_VERIFY, phase, rank

WIDTH = ("speculative_num_draft_tokens",)


def run(*phases: PhaseStats, width: int = 4, decode: CycleStats | None = None) -> Run:
    """A cycle of 4 ms that accepts 6 tokens of 3 requests: 1500 tokens/s."""
    made: RankRun = replace(
        rank(0, *phases),
        decode=decode or CycleStats(90, 4_000_000, 3_000_000, 3.0),
        accept=AcceptStats(90, 270, 540),
        arguments={"speculative_num_draft_tokens": width},
    )
    return Run("0.5.9", (), (made,), ())


def budget(found: Run) -> Budget:
    assert found.budget is not None
    return found.budget


def test_the_bound_is_tokens_of_a_cycle_over_its_time() -> None:
    found = budget(budgeted(run(phase("verify")), WIDTH))
    assert found.tokens_per_cycle == 6.0
    assert found.bound_tps == pytest.approx(1500.0)
    assert (found.break_even, found.replayed_tps, found.note) == (None, None, "")


def test_speculation_breaks_even_where_plain_decoding_yields_as_much() -> None:
    found = budget(budgeted(run(phase("verify")), WIDTH, baseline_tps=1125.0))
    # 1125 tokens/s are 4.5 in 4 ms, 1.5 for each of 3 requests.
    assert found.break_even == pytest.approx(1.5)


def test_eager_phases_that_replayed_would_save_their_difference() -> None:
    eager = replace(EAGER_VERIFY, median_cpu_ns=2_400_000, median_replay_ns=400_000)
    found = budget(budgeted(run(phase("draft"), eager), WIDTH))
    assert found.replayed_tps == pytest.approx(3000.0)
    assert found.replayed_sure


def test_an_eager_phase_that_was_never_seen_replaying_is_taken_for_free() -> None:
    eager = replace(phase("verify", State.EAGER), median_cpu_ns=1_000_000)
    found = budget(budgeted(run(eager), WIDTH))
    assert found.replayed_tps == pytest.approx(2000.0)
    assert not found.replayed_sure


def test_an_eager_prefill_costs_no_decode_cycle() -> None:
    found = budget(budgeted(run(phase("target_prefill", State.EAGER), phase("verify")), WIDTH))
    assert found.replayed_tps is None


def test_two_runs_give_the_fixed_and_the_token_part_of_verify() -> None:
    """A verify pass of 500 us and 25 us for each draft token."""
    four = replace(phase("verify"), gpu_ns=90 * 600_000, gpu_passes=90)
    eight = replace(phase("verify"), gpu_ns=90 * 700_000, gpu_passes=90)
    found = budget(budgeted(run(four), WIDTH, other=run(eight, width=8)))
    assert found.verify_fixed_ns == pytest.approx(500_000)
    assert found.verify_token_ns == pytest.approx(25_000)


@pytest.mark.parametrize(
    "other",
    [
        run(phase("verify"), width=4),
        run(phase("draft"), width=8),
        run(replace(phase("verify"), gpu_ns=9, gpu_passes=9), width=8),
        Run(None, (), (), ()),
    ],
    ids=["same width", "no verify", "one with GPU time", "empty"],
)
def test_runs_that_do_not_tell_the_parts_apart_are_said_so(other: Run) -> None:
    found = budget(budgeted(run(phase("verify")), WIDTH, other=other))
    assert found.verify_fixed_ns is None
    assert "do not tell the parts of a verify pass apart" in found.note


def test_without_decode_cycles_there_is_no_budget() -> None:
    empty = Run(None, (), (), ())
    assert budgeted(empty, WIDTH) == empty
    alone = run(phase("verify"), decode=CycleStats(1, None, 3_000_000, 3.0))
    assert budgeted(alone, WIDTH).budget is None


def test_without_accepted_tokens_no_bound_is_claimed() -> None:
    bare = run(phase("verify"))
    bare = replace(bare, ranks=(replace(bare.ranks[0], accept=AcceptStats(0, 0, 0)),))
    found = budget(budgeted(bare, WIDTH))
    assert (found.bound_tps, found.note) == (0.0, "SGLang's count of accepted tokens was not seen")


def test_the_rank_with_most_cycles_is_taken() -> None:
    first = run(phase("verify")).ranks[0]
    second = replace(first, decode=CycleStats(95, 8_000_000, 1, 3.0))
    found = budget(budgeted(Run(None, (), (first, second), ()), WIDTH))
    assert found.cycle_ns == 8_000_000
