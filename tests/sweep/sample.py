"""Runs and cells made by hand, for tests of ranking and rendering."""

from __future__ import annotations

from dataclasses import replace

from specmap.budget import budgeted
from specmap.codemap.event import AcceptStats, CycleStats, PhaseStats, Run, SizeCount, State
from specmap.codemap.launch import Plain, Refusal
from specmap.codemap.outcome import Assumption
from specmap.codemap.source import Span
from specmap.codemap.sweep import Axis, Cell, CellPhase, Sweep
from specmap.codemap.verdict import PhaseName, Verdict
from tests.report.sample_run import phase, rank

PHASES = (PhaseName.DRAFT, PhaseName.VERIFY, PhaseName.DRAFT_EXTEND)
RUNNER = Span("sglang/srt/model_executor/cuda_graph_runner.py", 403, 403)
WORK = ("speculative_num_steps", "speculative_eagle_topk", "speculative_num_draft_tokens")


def ran(
    name: str,
    state: State = State.GRAPH,
    *,
    cpu_us: int = 400,
    gpu_us: int | None = None,
    size: int = 4,
) -> PhaseStats:
    """Return a phase of 90 passes in one state, at one batch size."""
    return replace(
        phase(name, state),
        sizes=(SizeCount(size, state, 90),),
        median_cpu_ns=cpu_us * 1000,
        gpu_ns=90 * gpu_us * 1000 if gpu_us is not None else 0,
        gpu_passes=90 if gpu_us is not None else 0,
    )


def run(
    *phases: PhaseStats,
    steps: int = 3,
    topk: int = 1,
    tokens: int | None = None,
    cycle_us: int = 4000,
    accept: float | None = 2.0,
    **arguments: Plain,
) -> Run:
    """Return a run of four requests; without phases all three replay."""
    made = replace(
        rank(0, *(phases or tuple(map(ran, PHASES)))),
        decode=CycleStats(90, cycle_us * 1000, cycle_us * 900, 4.0),
        accept=AcceptStats(90, 360, round(360 * accept)) if accept else AcceptStats(0, 0, 0),
        arguments={
            "speculative_num_steps": steps,
            "speculative_eagle_topk": topk,
            "speculative_num_draft_tokens": steps + 1 if tokens is None else tokens,
            **arguments,
        },
        environment={},
    )
    return budgeted(Run("0.5.9", (), (made,), ()), (WORK[2],))


def cell(
    *values: str,
    steps: int = 3,
    topk: int = 1,
    tokens: int | None = None,
    verdict: Verdict = Verdict.GRAPH,
    size: int = 4,
    **settings: Plain,
) -> Cell:
    """Return a cell whose three phases end alike."""
    why = f"bs {size} > largest captured 2" if verdict is Verdict.EAGER else ""
    return Cell(
        values=(*values, str(size)),
        batch_size=size,
        workers=("EAGLEWorker",),
        phases=tuple(
            CellPhase(name, verdict, True, why, RUNNER if why else None) for name in PHASES
        ),
        settings={
            "speculative_num_steps": steps,
            "speculative_eagle_topk": topk,
            "speculative_num_draft_tokens": steps + 1 if tokens is None else tokens,
            **settings,
        },
        graph_size=size if verdict is Verdict.GRAPH else None,
        tokens_per_request=steps + 1 if tokens is None else tokens,
    )


def refused(*values: str) -> Cell:
    """Return a cell that SGLang refuses."""
    span = Span("sglang/srt/server_args.py", 2457, 2457)
    refusal = Refusal(True, "ValueError", "topk > 1 | page_size > 1 <is> unstable", span, (), ())
    return Cell(values, int(values[-1]), (), (), refusal)


def sweep(axes: tuple[Axis, ...], *cells: Cell) -> Sweep:
    """Return a sweep of these cells."""
    return Sweep(
        "sglang==0.5.9", "0.5.9", "cuda", ("--model-path", "m"), axes, cells, len(cells),
        assumptions=(Assumption("", "the model is a Llama", "--model-config"),),
    )  # fmt: skip
