"""The outcome of a launch of SGLang 0.5.12, written by hand."""

from __future__ import annotations

from specmap.codemap.launch import Fact, FactOrigin, OriginKind, Refusal
from specmap.codemap.outcome import (
    Assumption,
    BatchRange,
    Captured,
    Concern,
    Expectation,
    Outcome,
    PhaseOutcome,
    TermSource,
    TermValue,
    WorkerOutcome,
)
from specmap.codemap.source import Span
from specmap.codemap.verdict import PhaseName, Verdict

WORKER = "sglang/srt/speculative/eagle_worker_v2.py"
RUNNER = "sglang/srt/model_executor/cuda_graph_runner.py"
LIMIT = TermValue(
    "cuda_graph_bs <= self.max_bs",
    Span(RUNNER, 787, 787),
    False,
    TermSource.SIZE,
    "bs 4 > largest captured 2",
)
BACKEND = TermValue(
    "isinstance(self.draft_extend_attn_backend, TritonAttnBackend)",
    Span(WORKER, 314, 314),
    None,
    TermSource.UNKNOWN,
    reasons=("model config",),
    settings=(
        Fact("attention_backend", True, "fa3", (), (), (FactOrigin(OriginKind.GIVEN, None),)),
    ),
)
REFUSAL = Refusal(
    True, "ValueError", "no tree here", Span("sglang/srt/server_args.py", 9, 9), (), ()
)


def outcome(*, expected: Verdict = Verdict.GRAPH, refusal: Refusal | None = None) -> Outcome:
    """Return a launch whose verify runs eager at a batch of four."""
    return Outcome(
        target="sglang==0.5.12",
        release="0.5.12",
        platform="cuda",
        command=("--speculative-algorithm", "EAGLE3"),
        batch_size=4,
        refusal=refusal,
        may_refuse=(),
        workers=() if refusal else (_worker(),),
        captured=Captured((1, 2), (1, 2), (), (48, 48), 4, 20, 20, 0.1),
        settings=BACKEND.settings,
        concerns=(Concern("admission-above-capture", "admission 48 > 2", None, True),),
        expectations=(
            Expectation(PhaseName.VERIFY, expected, Verdict.EAGER, expected is Verdict.EAGER),
        ),
        assumptions=(Assumption("veto", "no rank votes against it"), Assumption("", "x is y")),
        missing=("model config (--model-config)",),
        notes=("a note",),
    )


def _worker() -> WorkerOutcome:
    return WorkerOutcome(
        id=f"{WORKER}::EAGLEWorkerV2",
        name="EAGLEWorkerV2",
        span=Span(WORKER, 648, 700),
        selected_at=Span("sglang/srt/managers/scheduler.py", 703, 703),
        certain=True,
        open_terms=(),
        phases=(
            PhaseOutcome(
                name=PhaseName.VERIFY,
                role="target",
                verdict=Verdict.EAGER,
                holder=f"{WORKER}::EAGLEWorkerV2.verify",
                span=Span(WORKER, 971, 980),
                ranges=(BatchRange(1, 2, Verdict.GRAPH), BatchRange(3, 48, Verdict.EAGER)),
                deciding=(LIMIT,),
                backend="triton",
                could_replay=True,
            ),
            PhaseOutcome(
                name=PhaseName.DRAFT_EXTEND,
                role="draft",
                verdict=Verdict.UNKNOWN,
                holder=f"{WORKER}::EagleDraftWorker._draft_extend_for_decode",
                span=Span(WORKER, 567, 600),
                open_terms=(BACKEND,),
                could_replay=True,
            ),
        ),
    )
