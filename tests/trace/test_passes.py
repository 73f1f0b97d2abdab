from __future__ import annotations

from pathlib import Path

import pytest

from specmap.codemap.event import LaunchCount, Launches, Pass, State
from specmap.trace.read import passes_of, read_run
from specmap.trace.spool import Kind
from specmap.traced import trace_names
from tests.trace.spools import (
    CAN_RUN,
    CHECK,
    DECODE,
    DECODED,
    DRAFT,
    DRAFT_EXTEND,
    EXTEND,
    EXTENDED,
    IDLE,
    NGRAM_STEP,
    PIECES,
    PLAN,
    PREFILLED,
    ROUTE,
    RUNNER,
    STEP,
    VERIFY,
    Rank,
)

NAMES = trace_names()


def passes(rank: Rank, folder: Path) -> list[Pass]:
    return list(passes_of(folder, rank.write(folder), PLAN, NAMES))


def seen(rank: Rank, folder: Path) -> list[tuple[int, str, State]]:
    return [(p.cycle, p.phase, p.state) for p in passes(rank, folder)]


def test_a_cycle_that_replays_has_three_graph_passes(tmp_path: Path) -> None:
    rank = Rank()
    rank.cycle(size=3, captured=4)
    found = passes(rank, tmp_path)
    assert [(p.phase, p.state, p.replays, p.sinks) for p in found] == [
        ("draft", State.GRAPH, 1, 1),
        ("verify", State.GRAPH, 1, 1),
        ("draft_extend", State.GRAPH, 1, 1),
    ]
    # The runner pads the batch before its inner replay: the size is the one before that.
    assert {(p.size, p.graph_size) for p in found} == {(3, 4)}
    assert {p.worker for p in found} == {"Worker"}
    assert {p.reason for p in found} == {""}


def test_an_eager_pass_has_all_its_forwards_and_the_reason(tmp_path: Path) -> None:
    rank = Rank()
    rank.cycle(size=4, eager=("draft", "verify"))
    draft, verify, extend = passes(rank, tmp_path)
    assert (draft.state, draft.sinks, draft.replays) == (State.EAGER, 2, 0)
    assert draft.reason == verify.reason == "bs 4 > largest captured 2"
    assert (verify.state, verify.graph_size) == (State.EAGER, -1)
    assert (extend.state, extend.reason) == (State.GRAPH, "")


def test_cycles_are_counted_and_each_pass_knows_its_own(tmp_path: Path) -> None:
    rank = Rank()
    rank.prefill()
    rank.cycle()
    rank.cycle(eager=("verify",))
    assert seen(rank, tmp_path) == [
        (0, "target_prefill", State.EAGER),
        (1, "draft", State.GRAPH),
        (1, "verify", State.GRAPH),
        (1, "draft_extend", State.GRAPH),
        (2, "draft", State.GRAPH),
        (2, "verify", State.EAGER),
        (2, "draft_extend", State.GRAPH),
    ]


def test_the_time_of_a_pass_is_that_of_its_phase_method(tmp_path: Path) -> None:
    rank = Rank(start_ns=0)
    with rank.call(STEP, DECODE, 4), rank.call(CHECK, DECODE, 4):  # enters at 2000
        rank.now += 500
        rank.graph(RUNNER, VERIFY, 4, 4)
        rank.now += 9000  # the verify tail
    (verify,) = passes(rank, tmp_path)
    assert (verify.start_ns, verify.cpu_ns) == (2000, 500 + 9000 + 4000)


def test_a_phase_that_the_entry_holds_is_timed_by_its_forwards(tmp_path: Path) -> None:
    rank = Rank(start_ns=0)
    with rank.call(NGRAM_STEP, DECODE, 2):
        rank.now += 50_000  # what the worker does besides
        rank.graph(RUNNER, VERIFY, 2, 2)
    (verify,) = passes(rank, tmp_path)
    assert (verify.worker, verify.phase, verify.cpu_ns) == ("NgramWorker", "verify", 2000)


def test_pieces_and_several_replays_are_piecewise(tmp_path: Path) -> None:
    rank = Rank()
    with rank.call(STEP, EXTEND, 1), rank.call(PREFILLED, EXTEND, 1), rank.call(PIECES, EXTEND, 1):
        rank.replay(3)
    # An eager forward in which segments replay.
    with rank.call(STEP, DECODE, 1), rank.call(CHECK, DECODE, 1), rank.call(PREFILLED, VERIFY, 1):
        rank.replay(2)
    assert seen(rank, tmp_path) == [
        (0, "target_prefill", State.PIECEWISE),
        (1, "verify", State.PIECEWISE),
    ]


def test_a_pass_of_which_some_forwards_replay_is_partial(tmp_path: Path) -> None:
    rank = Rank()
    with rank.call(STEP, DECODE, 1), rank.call(DRAFT, DECODE, 1):
        rank.forward(DECODED, DECODE, 1)
        with rank.call(DECODED, DECODE, 1):
            rank.replay()
    (draft,) = passes(rank, tmp_path)
    assert (draft.state, draft.sinks, draft.replays) == (State.PARTIAL, 2, 1)


def test_what_runs_while_a_graph_is_captured_is_a_capture(tmp_path: Path) -> None:
    rank = Rank()
    rank.put(Kind.CAPTURE_BEGIN)
    rank.forward(PREFILLED, VERIFY, 8)  # at start, outside any cycle: no pass
    rank.put(Kind.CAPTURE_END)
    with rank.call(STEP, DECODE, 1), rank.call(CHECK, DECODE, 1):
        rank.put(Kind.CAPTURE_BEGIN)
        rank.forward(PREFILLED, VERIFY, 1)
        rank.put(Kind.CAPTURE_END)
        rank.graph(RUNNER, VERIFY, 1, 1)
    rank.cycle()
    assert seen(rank, tmp_path)[:2] == [(0, "verify", State.CAPTURE), (1, "draft", State.GRAPH)]


def test_a_holder_of_another_mode_does_not_name_the_phase(tmp_path: Path) -> None:
    rank = Rank()
    with rank.call(STEP, DECODE, 1), rank.call(EXTENDED, DECODE, 1):
        rank.forward(PREFILLED, VERIFY, 1)  # verify's mode on the way of draft_extend
    (found,) = passes(rank, tmp_path)
    assert found.phase == "verify"


def test_a_forward_on_no_known_way_is_unknown(tmp_path: Path) -> None:
    rank = Rank()
    with rank.call(STEP, DECODE, 1):
        rank.forward(DECODED, DRAFT_EXTEND, 1)
    assert seen(rank, tmp_path) == [(0, "unknown", State.EAGER)]


def test_an_idle_batch_fits_every_phase(tmp_path: Path) -> None:
    rank = Rank()
    with rank.call(STEP, IDLE, 0), rank.call(CHECK, IDLE, 0):
        rank.graph(RUNNER, IDLE, 0, 1)
    assert seen(rank, tmp_path) == [(0, "verify", State.GRAPH)]


def test_a_worker_that_shares_an_entry_is_told_by_its_class(tmp_path: Path) -> None:
    rank = Rank()
    rank.header["classes"] = {"42": "OtherWorker"}
    with rank.call(STEP, DECODE, 1, object=42):
        rank.graph(RUNNER, VERIFY, 1, 1)
    (found,) = passes(rank, tmp_path)
    assert (found.worker, found.phase) == ("OtherWorker", "verify")


def test_the_reason_is_the_first_that_is_no_mode_test_and_no_call(tmp_path: Path) -> None:
    rank = Rank()
    with rank.call(STEP, DECODE, 4), rank.call(CHECK, DECODE, 4):
        rank.reason(ROUTE, "mode_check()")
        rank.too_large(4)
        rank.reason(ROUTE, "self.graph_runner.can_run(forward_batch)", call=True)
        rank.forward(PREFILLED, VERIFY, 4)
    (verify,) = passes(rank, tmp_path)
    assert verify.reason == "bs 4 > largest captured 2"


def test_the_reason_of_one_phase_is_not_that_of_the_next(tmp_path: Path) -> None:
    rank = Rank()
    with rank.call(STEP, DECODE, 4):
        with rank.call(DRAFT, DECODE, 4):
            rank.too_large(4)  # said no, and then nothing ran
        with rank.call(CHECK, DECODE, 4):
            rank.forward(PREFILLED, VERIFY, 4)
    (verify,) = passes(rank, tmp_path)
    assert verify.reason == "no graph was captured"


def test_accepted_tokens_go_to_their_verify_pass_in_order(tmp_path: Path) -> None:
    """With overlap the result of a cycle is processed after the next one was launched."""
    rank = Rank()
    rank.prefill()
    rank.cycle(size=2)
    rank.cycle(size=2)
    rank.accept(2, 5)
    rank.cycle(size=1)
    rank.accept(2, 8)
    rank.accept(1, 3)
    accepted = [(p.cycle, p.accepted) for p in passes(rank, tmp_path) if p.phase == "verify"]
    assert accepted == [(1, 5), (2, 8), (3, 3)]


@pytest.mark.parametrize("why", ["attached", "windows"])
def test_accepted_tokens_go_to_nobody_where_counting_began_in_the_middle(
    tmp_path: Path, why: str
) -> None:
    """The first count may be that of a cycle that was not seen; the sum of the rank stays."""
    rank = Rank()
    if why == "attached":
        rank.header["armed_from_start"] = False
    else:
        rank.put(Kind.OVERHEAD, value=1, size=8)
    rank.cycle()
    rank.accept(4, 9)
    assert {p.accepted for p in passes(rank, tmp_path)} == {None}


def test_in_a_disarmed_window_cycles_count_and_have_no_pass(tmp_path: Path) -> None:
    rank = Rank()
    rank.cycle()
    rank.put(Kind.OVERHEAD, value=0, size=2)
    for _ in range(2):
        with rank.call(STEP, DECODE, 4):
            pass
    rank.put(Kind.OVERHEAD, value=1, size=2)
    rank.cycle()
    found = passes(rank, tmp_path)
    assert [p.cycle for p in found] == [0, 0, 0, 3, 3, 3]
    assert {p.phase for p in found} == {"draft", "verify", "draft_extend"}


def test_cycle_numbers_go_on_where_a_rank_is_armed_again(tmp_path: Path) -> None:
    rank = Rank()
    rank.cycle()
    rank.put(Kind.DISARM, object=1)
    rank.put(Kind.ARM, object=40)
    rank.cycle()
    assert {p.cycle for p in passes(rank, tmp_path)} == {0, 40}


def test_gpu_times_arrive_cycles_late(tmp_path: Path) -> None:
    rank = Rank()
    for _ in range(3):
        rank.cycle()
    rank.put(Kind.GPU_SPAN, CHECK, value=4000, object=1)
    rank.put(Kind.GPU_SPAN, DRAFT, value=900, object=0)
    times = {(p.cycle, p.phase): p.gpu_ns for p in passes(rank, tmp_path) if p.gpu_ns is not None}
    assert times == {(1, "verify"): 4000, (0, "draft"): 900}


@pytest.mark.parametrize(
    ("kind", "size", "value", "place"),
    [
        (Kind.GPU_SPAN, -1, -5, 0),
        (Kind.LAUNCHES, -3, 1, 0),
        (Kind.LAUNCHES, 0, -7, 0),
        (Kind.LAUNCHES, 0, 2, 500),
        (Kind.LAUNCHES, 0, 2**31 - 1, 2**63),
    ],
)
def test_a_count_that_cannot_be_is_left_out(
    tmp_path: Path, kind: Kind, size: int, value: int, place: int
) -> None:
    rank = Rank()
    rank.put(Kind.COUNTING, value=1)
    launching(rank, eager=False)
    rank.put(kind, CHECK, size=size, value=value, object=place)
    launching(rank, eager=False)
    rank.write(tmp_path)
    run = read_run(tmp_path, NAMES)
    assert any("1 records are of no kind" in line for line in run.damage)
    (found,) = run.ranks[0].phases
    assert [count.usual for count in found.launches] == [Launches(1, 5, 0)]
    assert found.gpu_passes == 0


def test_the_gpu_time_of_an_entry_is_that_of_its_only_pass(tmp_path: Path) -> None:
    rank = Rank()
    with rank.call(NGRAM_STEP, DECODE, 2):
        rank.graph(RUNNER, VERIFY, 2, 2)
    with rank.call(NGRAM_STEP, DECODE, 2):
        rank.forward(PREFILLED, EXTEND, 2)
        rank.graph(RUNNER, VERIFY, 2, 2)
    for cycle in (0, 1):
        rank.put(Kind.GPU_SPAN, NGRAM_STEP, value=700, object=cycle)
    assert [(p.cycle, p.gpu_ns) for p in passes(rank, tmp_path)] == [(0, 700), (1, None), (1, None)]


def launching(rank: Rank, eager: bool, more: int = 0) -> None:
    """Write a cycle: outside its phases 5 kernels, in verify 60 with 32 collectives, or a graph."""
    with rank.call(STEP, DECODE, 4):
        rank.put(Kind.LAUNCHES, size=0, value=5, object=0)
        with rank.call(CHECK, DECODE, 4):
            rank.put(Kind.LAUNCHES, size=0, value=2, object=0)
            if eager:
                with rank.call(PREFILLED, VERIFY, 4):
                    rank.put(Kind.LAUNCHES, size=0, value=60, object=32)
            else:
                with rank.call(RUNNER, VERIFY, 4, 4):
                    rank.replay()
                    rank.put(Kind.LAUNCHES, size=1, value=0, object=0)
            rank.put(Kind.LAUNCHES, size=0, value=3 + more, object=0)


def test_launches_are_those_of_the_phase_s_own_method(tmp_path: Path) -> None:
    rank = Rank()
    launching(rank, eager=True)
    rank.put(Kind.COUNTING, value=1)
    for eager in (True, False, False, True):
        launching(rank, eager)
    rank.put(Kind.COUNTING, value=0)
    rank.cycle()
    verify = [p.launches for p in passes(rank, tmp_path) if p.phase == "verify"]
    one_by_one, replayed = Launches(0, 65, 32), Launches(1, 5, 0)
    assert verify == [None, one_by_one, replayed, replayed, one_by_one, None]


def test_a_phase_counts_its_launches_by_how_it_ran(tmp_path: Path) -> None:
    rank = Rank()
    rank.put(Kind.COUNTING, value=1)
    for eager in (True, False, False):
        launching(rank, eager)
    launching(rank, eager=False, more=1)
    rank.write(tmp_path)
    (found,) = read_run(tmp_path, NAMES).ranks[0].phases
    assert found.launches == (
        LaunchCount(State.GRAPH, 3, Launches(3, 16, 0), Launches(1, 5, 0), 2),
        LaunchCount(State.EAGER, 1, Launches(0, 65, 32), Launches(0, 65, 32), 1),
    )


def test_an_exception_ends_the_cycle_and_the_next_one_is_whole(tmp_path: Path) -> None:
    rank = Rank()
    rank.put(Kind.ENTER, STEP, DECODE, 1)
    rank.put(Kind.ENTER, CHECK, DECODE, 1)
    rank.put(Kind.ENTER, RUNNER, VERIFY, 1)
    for target in (RUNNER, CHECK, STEP):
        rank.put(Kind.RAISE, target)
    rank.cycle()
    assert seen(rank, tmp_path)[0] == (0, "verify", State.GRAPH)
    assert seen(rank, tmp_path)[1:] == [
        (1, name, State.GRAPH) for name in ("draft", "verify", "draft_extend")
    ]


@pytest.mark.parametrize("cut", range(1, 16))
def test_lost_records_never_join_the_calls_around_the_gap(tmp_path: Path, cut: int) -> None:
    """Whatever part of a cycle is lost, no pass is made of what is left of it."""
    rank = Rank()
    rank.cycle()
    whole = len(rank.records)
    rank.cycle(eager=("verify",))
    del rank.records[whole : whole + cut]
    rank.put(Kind.DROPS, value=cut)
    rank.records.insert(whole, rank.records.pop())
    rank.cycle()
    found = seen(rank, tmp_path)
    assert found[:3] == [(0, name, State.GRAPH) for name in ("draft", "verify", "draft_extend")]
    assert [(name, state) for _, name, state in found[3:]] == [
        (name, State.GRAPH) for name in ("draft", "verify", "draft_extend")
    ]


def test_decisions_outside_a_cycle_are_nobodys_reason(tmp_path: Path) -> None:
    rank = Rank()
    rank.reason(CAN_RUN, "self.enabled")
    rank.cycle(eager=("verify",))
    assert [p.reason for p in passes(rank, tmp_path) if p.phase == "verify"] == [
        "bs 4 > largest captured 2"
    ]
