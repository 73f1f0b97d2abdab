from __future__ import annotations

from pathlib import Path

import pytest

from specmap.codemap.event import Run, RunFinding, RunProblem
from specmap.trace.read import read_run
from specmap.trace.spool import Kind
from specmap.traced import trace_names
from tests.trace.spools import DECODE, RUNNER, STEP, VERIFY, Rank

NAMES = trace_names()


def two() -> tuple[Rank, Rank]:
    ranks = Rank(0, 7), Rank(1, 8)
    for rank in ranks:
        rank.header["arguments"] = {"tp_size": 2, "pp_size": 1}
    return ranks


def read(folder: Path, *ranks: Rank) -> Run:
    for rank in ranks:
        rank.write(folder)
    return read_run(folder, NAMES)


def about(run: Run, problem: RunProblem) -> list[RunFinding]:
    return [finding for finding in run.findings if finding.problem is problem]


def test_ranks_that_did_the_same_differ_in_nothing(tmp_path: Path) -> None:
    first, second = two()
    for rank in (first, second):
        rank.prefill()
        for _ in range(30):
            rank.cycle()
    second.now += 12345  # times are not compared
    assert read(tmp_path, first, second).findings == ()


def test_a_rank_that_runs_eager_alone_is_the_first_finding(tmp_path: Path) -> None:
    first, second = two()
    for number in range(30):
        first.cycle()
        second.cycle(eager=("verify",) if number >= 12 else ())
    run = read(tmp_path, first, second)
    top = run.findings[0]
    assert (top.problem, top.ranks, top.phase, top.cycle) == (
        RunProblem.RANK_EAGER, (second.name,), "verify", 12,
    )  # fmt: skip
    assert top.message == (
        "rank tp 1 ran verify eager while others replayed it, in 18 cycles, first in cycle 12: "
        "bs 4 > largest captured 2"
    )
    # Said once: not again as a phase that runs eager.
    assert about(run, RunProblem.PHASE_EAGER) == []


def test_all_ranks_eager_is_no_difference_between_them(tmp_path: Path) -> None:
    first, second = two()
    for rank in (first, second):
        for _ in range(10):
            rank.cycle(eager=("verify",))
    run = read(tmp_path, first, second)
    (finding,) = run.findings
    assert finding.problem is RunProblem.PHASE_EAGER
    assert finding.ranks == (first.name, second.name)


def test_graphs_of_other_sizes_are_told(tmp_path: Path) -> None:
    first, second = two()
    for number in range(10):
        first.cycle(size=3, captured=4)
        second.cycle(size=3, captured=8 if number == 6 else 4)
    found = about(read(tmp_path, first, second), RunProblem.GRAPH_SIZE)
    assert [(f.phase, f.cycle) for f in found] == [
        ("draft", 6), ("draft_extend", 6), ("verify", 6),
    ]  # fmt: skip
    assert "graphs of different sizes (4, 8) in cycle 6" in found[0].message


def test_a_phase_that_only_one_rank_runs_is_told(tmp_path: Path) -> None:
    first, second = two()
    for number in range(10):
        first.cycle()
        if number == 4:
            with second.call(STEP, DECODE, 4), second.call(3, DECODE, 4):
                second.graph(RUNNER, VERIFY, 4, 4)
        else:
            second.cycle()
    (finding,) = read(tmp_path, first, second).findings
    assert "ran different phases in cycle 4" in finding.message


def test_after_lost_records_ranks_are_not_compared(tmp_path: Path) -> None:
    """A gap may hide a cycle: what looks like another cycle may be the same one."""
    first, second = two()
    for number in range(30):
        first.cycle(eager=("verify",) if number == 20 else ())
        if number == 10:
            second.put(Kind.DROPS, value=40)
        elif number == 20:
            second.cycle(eager=("verify",))
        else:
            second.cycle()
    run = read(tmp_path, first, second)
    assert about(run, RunProblem.RANK_EAGER) == []
    assert about(run, RunProblem.GRAPH_SIZE) == []
    (loss,) = about(run, RunProblem.LOSS)
    assert loss.cycle == 10


def test_what_differed_before_the_loss_is_still_told(tmp_path: Path) -> None:
    first, second = two()
    for number in range(30):
        first.cycle()
        second.cycle(eager=("verify",) if number == 3 else ())
        if number == 10:
            second.put(Kind.DROPS, value=40)
    (finding,) = about(read(tmp_path, first, second), RunProblem.RANK_EAGER)
    assert finding.cycle == 3


def test_a_rank_without_a_log_is_told(tmp_path: Path) -> None:
    first, _ = two()
    first.cycle()
    (finding,) = read(tmp_path, first).findings
    assert (finding.problem, finding.message) == (
        RunProblem.RANK_MISSING, "1 of 2 ranks left no log (there are: rank tp 0)",
    )  # fmt: skip


def test_a_killed_rank_is_told_with_its_last_cycle(tmp_path: Path) -> None:
    first, second = two()
    second.header["finished"] = False
    for number in range(40):
        first.cycle()
        first.now += 100_000_000
        if number < 15:
            second.cycle()
            second.now += 100_000_000
    found = about(read(tmp_path, first, second), RunProblem.RANK_MISSING)
    assert [(f.ranks, f.cycle) for f in found] == [((second.name,), 15)]
    assert "killed or hangs after 15 cycles, 2.5 s before the others" in found[0].message


def test_ranks_that_are_stopped_together_may_differ_by_a_cycle(tmp_path: Path) -> None:
    first, second = two()
    for number in range(40):
        first.cycle()
        if number < 39:
            second.cycle()
    assert read(tmp_path, first, second).findings == ()


def test_ranks_that_the_server_killed_at_its_end_are_no_finding(tmp_path: Path) -> None:
    """Engine.shutdown() sends SIGKILL: every log stays open, and ends where it was flushed."""
    first, second = two()
    for rank in (first, second):
        rank.header["finished"] = False
        rank.cycle()
    second.put(Kind.ENTER, STEP, DECODE, 4)
    first.now += 200_000_000
    first.cycle()
    assert read(tmp_path, first, second).findings == ()


def test_a_rank_whose_scheduler_is_slow_is_told(tmp_path: Path) -> None:
    first, second = two()
    for _ in range(30):
        first.cycle()
        with second.call(STEP, DECODE, 4):
            second.now += 500_000
            for holder, mode in ((3, VERIFY),):
                with second.call(holder, DECODE, 4):
                    second.graph(RUNNER, mode, 4, 4)
    found = about(read(tmp_path, first, second), RunProblem.SLOW_RANK)
    assert [f.ranks for f in found] == [(second.name,)]


@pytest.mark.parametrize("late", [0, 5])
def test_ranks_that_were_attached_to_are_matched_by_their_starts(tmp_path: Path, late: int) -> None:
    """The second rank was armed some cycles later; both run in step on one host."""
    first, second = two()
    for rank in (first, second):
        rank.header["armed_from_start"] = False
    for number in range(30):
        start = max(first.now, second.now)
        first.now = second.now = start
        first.cycle()
        if number >= late:
            second.cycle(eager=("verify",) if number == 12 else ())
        first.now = second.now = max(first.now, second.now) + 300_000
    (finding,) = about(read(tmp_path, first, second), RunProblem.RANK_EAGER)
    assert (finding.ranks, finding.cycle) == ((second.name,), 12)


def test_ranks_of_two_hosts_that_were_attached_to_are_not_compared(tmp_path: Path) -> None:
    first, second = two()
    for number, rank in enumerate((first, second)):
        rank.header |= {"armed_from_start": False, "boot_id": f"boot {number}"}
        for _ in range(10):
            rank.cycle(eager=("verify",) if number else ())
    run = read(tmp_path, first, second)
    assert about(run, RunProblem.RANK_EAGER) == []
    assert ": not compared, for the cycles cannot be matched" in str(run.findings)


def test_replicas_are_compared_each_with_itself(tmp_path: Path) -> None:
    ranks = []
    for dp in (0, 1):
        for tp in (0, 1):
            rank = Rank(tp, 10 + 2 * dp + tp)
            arguments = {"tp_size": 2, "pp_size": 1, "dp_size": 2}
            rank.header |= {"dp_rank": dp, "arguments": arguments}
            for _ in range(10):
                rank.cycle(eager=("verify",) if dp else ())
            ranks.append(rank)
    run = read(tmp_path, *ranks)
    assert [f.problem for f in run.findings] == [RunProblem.PHASE_EAGER]


def test_replicas_inside_a_group_run_the_same_cycles_with_their_own_batches(
    tmp_path: Path,
) -> None:
    """--enable-dp-attention: eight ranks of one TP group are eight data-parallel ranks."""
    ranks = []
    for number in range(4):
        rank = Rank(number, 10 + number)
        arguments = {"tp_size": 4, "pp_size": 1, "dp_size": 4, "enable_dp_attention": True}
        rank.header |= {"dp_rank": number, "arguments": arguments}
        for cycle in range(10):
            rank.cycle(
                size=number + 1, captured=4,
                eager=("verify",) if number == 2 and cycle == 6 else (),
            )  # fmt: skip
        with rank.call(STEP, DECODE, 0):
            if number:
                with rank.call(3, DECODE, 0):
                    rank.graph(RUNNER, VERIFY, 0, number)
        ranks.append(rank)
    run = read(tmp_path, *ranks)
    assert run.ranks_expected == 4
    assert [(f.problem, f.ranks, f.cycle) for f in run.findings] == [
        (RunProblem.RANK_EAGER, (ranks[2].name,), 6)
    ]


def test_a_replica_that_left_no_log_is_missed(tmp_path: Path) -> None:
    first, second = two()
    for rank in (first, second):
        rank.header |= {"dp_rank": 0, "arguments": {"tp_size": 2, "pp_size": 1, "dp_size": 3}}
        rank.cycle()
    (finding,) = read(tmp_path, first, second).findings
    assert finding.message.startswith("4 of 6 ranks left no log")


HUNDRED = 100


def test_what_a_hundred_ranks_have_in_common_is_one_line_with_the_ranks(tmp_path: Path) -> None:
    """Only rank 7 is well, and a different fault of rank 3 keeps its own line."""
    every = [Rank(tp, 10 + tp) for tp in range(HUNDRED)]
    for tp, rank in enumerate(every):
        rank.header["arguments"] = {"tp_size": HUNDRED, "pp_size": 1}
        rank.header["finished"] = False
        if tp not in (3, 7):
            rank.names.append({"id": 90, "kind": "fault", "text": "no CUPTI"})
        if tp != 7:
            rank.put(Kind.DROPS, value=1 + tp)
        rank.cycle(eager=("verify",) if tp == 7 else ())
        if tp != 7:
            rank.records.append(b"half")
    every[3].names.append({"id": 90, "kind": "fault", "text": "disk full"})
    found = read(tmp_path, *every).findings
    ranks = "ranks tp 0 to 6, 8 to 99"
    lost = sum(range(1, HUNDRED + 1)) - 8
    assert sorted(f.message.partition(" (")[0] for f in found if not f.failing) == [
        "rank tp 3: disk full",
        "ranks tp 0 to 2, 4 to 6, 8 to 99: no CUPTI",
        f"{ranks} lost {lost} records, the first of them in cycle 0",
        f"{ranks}: the log is cut off in the middle of a record, which is left out",
    ]
    (cut,) = [f for f in found if "cut off" in f.message]
    assert cut.ranks == tuple(rank.name for rank in every if rank is not every[7])


def test_ranks_of_a_grid_that_are_no_rectangle_are_named_one_by_one(tmp_path: Path) -> None:
    grid = [Rank(tp, 10 + 2 * pp + tp) for pp in (0, 1) for tp in (0, 1)]
    for number, rank in enumerate(grid):
        rank.name = f"rank-{number % 2}-{number // 2}-0-{number}"
        rank.header |= {"pp_rank": number // 2, "arguments": {"tp_size": 2, "pp_size": 2}}
        rank.cycle()
        if number:
            rank.names.append({"id": 90, "kind": "fault", "text": "x"})
    (fault,) = read(tmp_path, *grid).findings
    assert fault.message == "ranks tp 0, pp 1; tp 1; tp 1, pp 1: x"


def test_two_ranks_are_no_range(tmp_path: Path) -> None:
    pair = two()
    for rank in pair:
        rank.cycle()
        rank.names.append({"id": 90, "kind": "fault", "text": "x"})
    (fault,) = read(tmp_path, *pair).findings
    assert fault.message == "ranks tp 0, 1: x"


def test_files_that_are_missing_on_many_ranks_are_one_line(tmp_path: Path) -> None:
    every = [Rank(tp, 10 + tp) for tp in range(20)]
    for rank in every:
        rank.cycle()
    read(tmp_path, *every)
    for rank in every[4:]:
        (tmp_path / f"{rank.name}.names").unlink()
    (line,) = read_run(tmp_path, NAMES).damage
    assert line == (
        "rank-4-0-0-14.names and those of 15 more ranks: missing; reasons and places have no text"
    )
