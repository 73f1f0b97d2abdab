"""A run to render: two ranks, the second eager in verify, with a budget and static verdicts."""

from __future__ import annotations

from dataclasses import replace

from specmap.codemap.event import (
    AcceptStats,
    Agreement,
    Budget,
    CycleStats,
    Joined,
    Overhead,
    PhaseStats,
    RankRun,
    ReasonCount,
    Run,
    RunFinding,
    RunProblem,
    SizeCount,
    State,
    Stretch,
    SyncStats,
)
from specmap.codemap.source import Span
from specmap.codemap.verdict import Verdict

RUNNER = Span("sglang/srt/model_executor/cuda_graph_runner.py", 400, 400)
WORKER = Span("sglang/srt/speculative/eagle_worker.py", 731, 731)


def phase(name: str, state: State = State.GRAPH, passes: int = 90) -> PhaseStats:
    """Return a phase of which all passes ran alike."""
    replayed = state is State.GRAPH
    return PhaseStats(
        worker="EAGLEWorker", phase=name, passes=passes, counts={state: passes}, reasons=(),
        stretches=(Stretch(state, 1, passes, passes),), cpu_ns=passes * 400_000,
        median_cpu_ns=400_000, median_replay_ns=400_000 if replayed else None, share=0.31,
        gpu_ns=0, gpu_passes=0, real=3 * passes if replayed else 0,
        padded=4 * passes if replayed else 0, graph_sizes=(4,) if replayed else (),
        replays=passes if replayed else 0, sizes=(SizeCount(3, state, passes),),
    )  # fmt: skip


def rank(tp: int, *phases: PhaseStats) -> RankRun:
    """Return a rank that ran 91 cycles."""
    return RankRun(
        name=f"rank-{tp}-0-0-{700 + tp}", tp_rank=tp, pp_rank=0, dp_rank=-1, pid=700 + tp,
        host="node1", ring="c", gpu="H200", finished=True, records=2400, cycles=91,
        first_ns=1_000, last_ns=900_000_000, phases=phases,
        decode=CycleStats(90, 4_700_000, 3_100_000, 3.0), accept=AcceptStats(90, 270, 621),
        syncs=(SyncStats(WORKER, ".item() (removable)", "verify", 90, 9_000_000),),
        overhead=Overhead(120, 0.0021, 0.0003, -0.0004, 0.0004), wrapped=11,
        arguments={"tp_size": 2, "speculative_num_draft_tokens": 4, "cuda_graph_bs": (1, 2)},
        versions={"sglang": "0.5.9", "torch": "2.9.1"},
        environment={"NCCL_NVLS_ENABLE": "0"},
    )  # fmt: skip


EAGER_VERIFY = replace(
    phase("verify", State.EAGER),
    counts={State.GRAPH: 16, State.EAGER: 74},
    reasons=(ReasonCount("bs 4 > largest captured 2", 74, 17, RUNNER),),
    stretches=(Stretch(State.GRAPH, 1, 16, 16), Stretch(State.EAGER, 17, 90, 74)),
    gpu_ns=90 * 2_500_000,
    gpu_passes=90,
    median_cpu_ns=2_400_000,
)
PREFILL = replace(
    phase("target_prefill", State.EAGER, 1),
    reasons=(ReasonCount("disabled (disable_piecewise_cuda_graph)", 1, 0),),
)

RUN = Run(
    release="0.5.9",
    command=("python", "-m", "sglang.launch_server", "--tp", "2"),
    ranks=(
        rank(0, PREFILL, phase("draft"), phase("verify"), phase("draft_extend")),
        rank(1, PREFILL, phase("draft"), EAGER_VERIFY, phase("draft_extend")),
    ),
    findings=(
        RunFinding(
            RunProblem.RANK_EAGER,
            "rank tp 1 ran verify eager while others replayed it, in 74 cycles, first in cycle "
            "17: bs 4 > largest captured 2",
            ("rank-1-0-0-701",), "verify", 17,
        ),
        RunFinding(
            RunProblem.LOSS, "rank tp 0 was cut off in the middle of a record (4 bytes left out)",
            ("rank-0-0-0-700",), failing=False,
        ),
    ),
    ranks_expected=2,
    joined=(
        Joined("EAGLEWorker", "draft", Verdict.GRAPH, {State.GRAPH: 180}, Agreement.AGREE),
        Joined("EAGLEWorker", "verify", Verdict.GRAPH, {State.GRAPH: 106, State.EAGER: 74},
               Agreement.CONTRADICT, "batches were larger than any captured one"),
        Joined("EAGLEWorker", "draft_prefill", Verdict.EAGER, {}, Agreement.NOT_EXERCISED),
    ),
    budget=Budget(
        cycle_ns=4_700_000, requests=3.0, tokens_per_cycle=6.9, bound_tps=1468.1,
        baseline_tps=1000.0, break_even=1.57, replayed_tps=2555.6, replayed_sure=False,
        verify_fixed_ns=500_000.0, verify_token_ns=20_000.0,
    ),
    notes=("traced for 30 s",),
)  # fmt: skip
