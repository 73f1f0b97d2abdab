from __future__ import annotations

import gc
import random
import tracemalloc
from itertools import pairwise
from pathlib import Path

import pytest

from specmap.codemap.event import PhaseStats, RankRun, Run, RunProblem, SizeCount, State
from specmap.errors import TraceError
from specmap.trace.read import LiveRun, load_plan, read_run
from specmap.trace.spool import Kind, Tail
from specmap.trace.summary import Summary
from specmap.traced import trace_names
from tests.trace.spools import CHECK, DECODE, PLAN, PREFILLED, RUNNER, STEP, VERIFY, Rank

NAMES = trace_names()


def read(folder: Path, *ranks: Rank) -> Run:
    for rank in ranks:
        rank.write(folder)
    return read_run(folder, NAMES)


def only(run: Run) -> RankRun:
    (rank,) = run.ranks
    return rank


def phase(rank: RankRun, name: str) -> PhaseStats:
    return next(p for p in rank.phases if p.phase == name)


def problems(run: Run) -> list[RunProblem]:
    return [finding.problem for finding in run.findings]


def test_a_run_counts_passes_states_and_accepted_tokens(tmp_path: Path) -> None:
    rank = Rank()
    rank.prefill()
    for _ in range(5):
        rank.cycle(size=3, captured=4)
        rank.accept(3, 7)
    found = only(read(tmp_path, rank))
    assert [(p.phase, p.passes, dict(p.counts)) for p in found.phases] == [
        ("target_prefill", 1, {State.EAGER: 1}),
        ("draft", 5, {State.GRAPH: 5}),
        ("verify", 5, {State.GRAPH: 5}),
        ("draft_extend", 5, {State.GRAPH: 5}),
    ]
    assert (found.cycles, found.decode.count, found.decode.requests) == (6, 5, 3.0)
    assert (found.accept.steps, found.accept.tokens, found.accept.length) == (5, 35, 35 / 15)
    verify = phase(found, "verify")
    assert (verify.real, verify.padded, verify.graph_sizes) == (15, 20, (4,))
    assert verify.sizes == (SizeCount(3, State.GRAPH, 5),)


def test_nothing_is_found_where_every_phase_replays(tmp_path: Path) -> None:
    rank = Rank()
    rank.prefill()
    for _ in range(5):
        rank.cycle()
    run = read(tmp_path, rank)
    assert (run.findings, run.failing) == ((), False)


def test_the_cycle_time_is_from_start_to_start(tmp_path: Path) -> None:
    rank = Rank(start_ns=0)
    starts = []
    for pause in (10_000, 20_000, 40_000):
        starts.append(rank.now + 1000)
        rank.cycle()
        rank.now += pause
    rank.prefill()  # what lies between is no decode cycle
    rank.cycle()
    gaps = [later - earlier for earlier, later in pairwise(starts)]
    assert only(read(tmp_path, rank)).decode.median_ns == max(gaps)


def test_a_slow_first_pass_does_not_make_its_phase_large(tmp_path: Path) -> None:
    """Kernels are compiled in the first pass: the share of a phase is one of medians."""
    rank = Rank()
    with rank.call(STEP, DECODE, 4), rank.call(CHECK, DECODE, 4):
        rank.now += 10**9
        rank.graph(RUNNER, VERIFY, 4, 4)
    for _ in range(9):
        rank.cycle()
    verify = phase(only(read(tmp_path, rank)), "verify")
    assert verify.median_cpu_ns == 4000
    assert verify.share == pytest.approx(4000 / entry_ns())


def entry_ns() -> int:
    rank = Rank(start_ns=0)
    rank.cycle()
    return rank.now - 1000


def test_a_batch_that_shrinks_switches_back_to_the_graph_at_its_cycle(tmp_path: Path) -> None:
    rank = Rank()
    for _ in range(17):
        rank.cycle(size=4, eager=("verify",))
    for _ in range(30):
        rank.cycle(size=2, captured=2)
    run = read(tmp_path, rank)
    verify = phase(only(run), "verify")
    assert [(s.state, s.first, s.last, s.passes) for s in verify.stretches] == [
        (State.EAGER, 0, 16, 17),
        (State.GRAPH, 17, 46, 30),
    ]
    (reason,) = verify.reasons
    assert (reason.text, reason.count, reason.first_cycle) == ("bs 4 > largest captured 2", 17, 0)
    assert str(reason.span) == "sglang/srt/model_executor/runner.py:91"
    (finding,) = run.findings
    assert finding.problem is RunProblem.PHASE_EAGER
    assert finding.message == (
        "Worker.verify ran eager in 17 of 47 passes: bs 4 > largest captured 2; "
        "from cycle 17 on GRAPH"
    )


def test_an_eager_prefill_and_a_rare_eager_pass_do_not_fail(tmp_path: Path) -> None:
    rank = Rank()
    rank.prefill()
    rank.cycle(eager=("verify",))
    for _ in range(200):
        rank.cycle()
    run = read(tmp_path, rank)
    assert (problems(run), run.failing) == ([RunProblem.PHASE_EAGER], False)


def test_many_switches_keep_the_first_and_the_last(tmp_path: Path) -> None:
    rank = Rank()
    for number in range(60):
        rank.cycle(eager=("verify",) if number % 2 else ())
    stretches = phase(only(read(tmp_path, rank)), "verify").stretches
    assert [s.first for s in stretches] == [0, 1, 2, 3, 56, 57, 58, 59]


def test_host_waits_are_summed_by_place_and_phase(tmp_path: Path) -> None:
    rank = Rank()
    rank.names.append(
        {"id": 50, "kind": "site", "file": "/opt/x/sglang/srt/speculative/worker.py", "line": 41,
         "call": "item"}
    )  # fmt: skip
    for blocked in (3000, 5000):
        with rank.call(STEP, DECODE, 1):
            with rank.call(CHECK, DECODE, 1):
                rank.forward(PREFILLED, VERIFY, 1)
                rank.put(Kind.SYNC, 50, value=blocked)
            rank.put(Kind.SYNC, 50, value=100)
    found = only(read(tmp_path, rank)).syncs
    assert [(s.phase, s.count, s.blocked_ns, s.label) for s in found] == [
        ("verify", 2, 8000, ".item() (removable)"),
        ("", 2, 200, ".item() (removable)"),
    ]
    assert str(found[0].span) == "sglang/srt/speculative/worker.py:41"


ENTRIES = ("sglang.srt.speculative.worker.Worker.step",
           "sglang.srt.speculative.worker.NgramWorker.step")  # fmt: skip
LOADED = {"symbol": "x", "wrapped": True, "reason": ""}


def missing(symbol: str, why: str) -> dict[str, object]:
    return {"symbol": symbol, "wrapped": False, "reason": why}


@pytest.mark.parametrize(
    ("targets", "said"),
    [
        ([LOADED], "no request was sent"),
        ([LOADED, missing(ENTRIES[1], "its module was not loaded")], "no request was sent"),
        ([LOADED, *(missing(entry, "its module was not loaded") for entry in ENTRIES)],
         "no worker of the plan was loaded: the server does not speculate"),
        ([LOADED, missing(ENTRIES[0], "no class Worker here"),
          missing(ENTRIES[1], "its module was not loaded")],
         f"{ENTRIES[0]} could not be wrapped (no class Worker here): is this the SGLang that"),
        ([missing("x", "no such function")], "x could not be wrapped (no such function): is this"),
        ([], "nothing could be wrapped: is this the SGLang that the plan was made for?"),
    ],
)  # fmt: skip
def test_no_cycle_says_what_is_likely(
    tmp_path: Path, targets: list[dict[str, object]], said: str
) -> None:
    silent = Rank()
    silent.header["targets"] = targets
    run = read(tmp_path, silent)
    assert problems(run) == [RunProblem.NO_CYCLE]
    assert said in run.findings[0].message


def test_a_run_without_a_rank_says_so(tmp_path: Path) -> None:
    name = Rank().write(tmp_path)
    for suffix in (".json", ".names", ".spool"):
        (tmp_path / (name + suffix)).unlink()
    assert "no rank wrote a log" in read_run(tmp_path, NAMES).findings[0].message


def test_a_launcher_that_wrote_a_header_is_no_rank(tmp_path: Path) -> None:
    rank, launcher = Rank(), Rank(pid=8)
    rank.cycle()
    launcher.header |= {"tp_rank": None, "pp_rank": None}
    assert [r.name for r in read(tmp_path, rank, launcher).ranks] == [rank.name]


def test_functions_that_could_not_be_wrapped_are_told_if_they_were_needed(tmp_path: Path) -> None:
    rank = Rank()
    rank.cycle()
    verify = "sglang.srt.speculative.worker.Worker.verify"
    rank.header["targets"] = [
        {"symbol": verify, "wrapped": False, "reason": "no such function"},
        {"symbol": "sglang.srt.speculative.worker.NgramWorker.step", "wrapped": False,
         "reason": "its module was not loaded"},
    ]  # fmt: skip
    (finding,) = read(tmp_path, rank).findings
    assert (finding.problem, finding.failing) == (RunProblem.UNWRAPPED, False)
    assert f"not wrapped: {verify} (no such function); " in finding.message


def test_a_graph_runner_without_a_launch_is_doubtful(tmp_path: Path) -> None:
    rank = Rank()
    with rank.call(STEP, DECODE, 1), rank.call(CHECK, DECODE, 1), rank.call(5, VERIFY, 1, 1):
        pass
    run = read(tmp_path, rank)
    assert problems(run) == [RunProblem.UNKNOWN_PATH]
    assert "no graph launch was seen" in run.findings[0].message


def test_graphs_that_are_captured_at_start_are_counted(tmp_path: Path) -> None:
    rank = Rank()
    for _ in range(3):
        rank.put(Kind.CAPTURE_BEGIN)
        rank.put(Kind.CAPTURE_END)
    rank.cycle()
    assert only(read(tmp_path, rank)).captures == 3


def test_lost_records_and_a_cut_file_are_told(tmp_path: Path) -> None:
    rank = Rank()
    rank.header["finished"] = False
    rank.cycle()
    rank.put(Kind.DROPS, value=5)
    rank.cycle()
    rank.records.append(b"half")
    run = read(tmp_path, rank)
    found = only(run)
    assert (found.lost, found.first_loss, found.cut_bytes) == (5, 1, 4)
    assert problems(run) == [RunProblem.LOSS, RunProblem.LOSS]
    assert "lost 5 records from cycle 1 on" in run.findings[0].message
    assert not run.failing


def test_a_fault_of_the_agent_is_one_line(tmp_path: Path) -> None:
    rank = Rank()
    rank.cycle()
    rank.names.append({"id": 9, "kind": "fault", "text": "disk full, tracing stopped"})
    (finding,) = read(tmp_path, rank).findings
    assert finding.message == "rank tp 0: disk full, tracing stopped"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "is no run: it has no plan.json"),
        ("{}", "plan.json: not a wrap plan"),
        ("no json", "plan.json: not a wrap plan"),
        ('{"schema": 9}', "plan.json: schema 9, this specmap reads 1"),
    ],
)
def test_a_folder_that_is_no_run_is_refused(tmp_path: Path, content: str | None, said: str) -> None:
    if content is not None:
        (tmp_path / "plan.json").write_text(content, "utf-8")
    with pytest.raises(TraceError, match=said):
        load_plan(tmp_path)


def test_a_log_in_place_of_a_folder_is_told_where_it_is_read(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text("server_args=ServerArgs(tp_size=1)\n", "utf-8")
    with pytest.raises(TraceError, match=r"is a file, not the folder of a run; .* scan --args-fi"):
        load_plan(log)


def test_reading_while_it_is_written_ends_at_the_same_figures(tmp_path: Path) -> None:
    rank = Rank()
    for number in range(300):
        rank.cycle(eager=("draft",) if number % 7 == 0 else ())
        rank.accept(4, 9)
    name = rank.write(tmp_path)
    whole = read_run(tmp_path, NAMES)
    path = tmp_path / f"{name}.spool"
    data = path.read_bytes()
    live = LiveRun(tmp_path, PLAN, NAMES)
    chance, end = random.Random(5), 0
    while end < len(data):
        end = min(len(data), end + chance.randrange(1, 5000))
        path.write_bytes(data[:end])
        live.poll()
    assert live.poll() == whole


def test_memory_does_not_grow_with_the_run(tmp_path: Path) -> None:
    """But with its changes, 12 bytes each: a day of a busy server is read like a minute."""
    rank = Rank()
    for number in range(40):
        rank.cycle(eager=("verify",) if number < 3 else ())
    block = Tail(tmp_path, rank.write(tmp_path)).poll()
    tail, summary = Tail(tmp_path, rank.name), Summary(PLAN, NAMES)
    tail.poll()
    for _ in range(120):  # until the samples are full
        summary.feed(tail, block)
    tracemalloc.start()
    for _ in range(20):  # until everything that waits was allocated while it was watched
        summary.feed(tail, block)
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(60):
        summary.feed(tail, block)
    gc.collect()
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert summary.rank_run(tail).cycles == 200 * 40
    changes = 2 * 60
    assert grown < changes * 12 * 2 + 200_000
