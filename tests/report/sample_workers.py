"""The two workers of the hand-written map."""

from __future__ import annotations

from specmap.codemap.condition import AtomKind, all_of, any_of, negate
from specmap.codemap.graph import Arm, Entry, Phase, StaticShape, Worker
from specmap.codemap.verdict import PhaseName, SinkKind, Verdict
from tests.report.sample_facts import (
    AFTER,
    DRAFT_EAGER,
    DRAFT_FITS,
    DRAFT_RUNNER,
    EAGER_EXTEND,
    ENTRY,
    EXTEND_FITS,
    EXTEND_RUNNER,
    PIECEWISE,
    PIECEWISE_FITS,
    PIECEWISE_HOPS,
    PREFILL,
    TARGET,
    VERIFY,
    VERIFY_GRAPH,
    VERIFY_PIECEWISE,
    at,
    atom,
    chain,
    sym,
)


def _verify_phase() -> Phase:
    return Phase(
        name=PhaseName.VERIFY,
        role="target",
        forward_modes=("TARGET_VERIFY", "IDLE"),
        span=at("EAGLEWorker", 716, 718),
        holder=sym("EAGLEWorker.verify"),
        arms=(
            Arm(
                "replay",
                SinkKind.GRAPH,
                VERIFY_GRAPH,
                chain(*VERIFY, ("ModelRunner._forward_raw", 2463), ("CudaGraphRunner.replay", 866)),
            ),
            Arm("piecewise", SinkKind.PIECEWISE, VERIFY_PIECEWISE, chain(*VERIFY, *PIECEWISE_HOPS)),
            Arm(
                "extend",
                SinkKind.EAGER,
                all_of(negate(VERIFY_GRAPH), any_of(negate(PIECEWISE), negate(PIECEWISE_FITS))),
                chain(*VERIFY, *EAGER_EXTEND),
            ),
        ),
        graph_when=VERIFY_GRAPH,
        verdict=None,
        decisions=("raw", "can_run", "capture_mode"),
        static_shape=StaticShape(
            True,
            "speculative_num_draft_tokens",
            at("CudaGraphRunner", 289),
            "topk 1: num_steps + 1; any other tree has a fixed number of tokens too",
        ),
    )


def _draft_phase() -> Phase:
    graph = all_of(DRAFT_RUNNER, DRAFT_FITS)
    return Phase(
        name=PhaseName.DRAFT,
        role="draft",
        forward_modes=("DECODE",),
        span=at("EAGLEWorker", 670, 672),
        holder=sym("EAGLEWorker.draft_forward"),
        arms=(
            Arm(
                "draft_replay",
                SinkKind.GRAPH,
                graph,
                chain(
                    (ENTRY, 314),
                    ("EAGLEWorker.draft", 557),
                    ("EAGLEDraftCudaGraphRunner.replay", 384),
                    ("EAGLEDraftCudaGraphRunner._replay", 176),
                ),
            ),
            Arm("decode", SinkKind.EAGER, negate(graph), chain(*DRAFT_EAGER)),
        ),
        graph_when=graph,
        verdict=None,
        decisions=("draft",),
    )


def _draft_extend_phase() -> Phase:
    graph = all_of(EXTEND_RUNNER, EXTEND_FITS)
    return Phase(
        name=PhaseName.DRAFT_EXTEND,
        role="draft",
        forward_modes=("DRAFT_EXTEND", "IDLE"),
        span=at("EAGLEWorker", 973, 975),
        holder=sym("EAGLEWorker.forward_draft_extend_after_decode"),
        arms=(
            Arm(
                "draft_extend_replay",
                SinkKind.GRAPH,
                graph,
                chain(
                    (ENTRY, 329),
                    ("EAGLEWorker.forward_draft_extend_after_decode", 959),
                    ("EAGLEDraftExtendCudaGraphRunner.replay", 473),
                    ("EAGLEDraftExtendCudaGraphRunner._replay", 230),
                ),
            ),
            Arm(
                "extend",
                SinkKind.EAGER,
                negate(graph),
                chain(*AFTER, ("ModelRunner.forward", 2401), *EAGER_EXTEND),
            ),
        ),
        graph_when=graph,
        verdict=None,
        decisions=("draft_extend",),
    )


def _prefill_phases() -> tuple[Phase, Phase]:
    piecewise = all_of(PIECEWISE, PIECEWISE_FITS)
    target = Phase(
        name=PhaseName.TARGET_PREFILL,
        role="target",
        forward_modes=("EXTEND",),
        span=at("EAGLEWorker", 373),
        holder=sym("EAGLEWorker.forward_target_extend"),
        arms=(
            Arm("piecewise", SinkKind.PIECEWISE, piecewise, chain(*PREFILL, *PIECEWISE_HOPS)),
            Arm("extend", SinkKind.EAGER, negate(piecewise), chain(*PREFILL, *EAGER_EXTEND)),
        ),
        graph_when=any_of(),
        verdict=None,
    )
    draft = Phase(
        name=PhaseName.DRAFT_PREFILL,
        role="draft",
        forward_modes=("EXTEND",),
        span=at("EAGLEWorker", 895),
        holder=sym("EAGLEWorker.forward_draft_extend"),
        arms=(
            Arm(
                "extend",
                SinkKind.EAGER,
                all_of(),
                chain(
                    (ENTRY, 297),
                    ("EAGLEWorker.forward_draft_extend", 895),
                    ("ModelRunner.forward", 2401),
                    *EAGER_EXTEND,
                ),
            ),
        ),
        graph_when=any_of(),
        verdict=Verdict.EAGER,
        note="the draft runner is built while graphs are switched off (line 112)",
    )
    return target, draft


def ngram() -> Worker:
    entry = "NGRAMWorker.forward_batch_generation"
    hops = ((entry, 234), *TARGET)
    verify = Phase(
        name=PhaseName.VERIFY,
        role="target",
        forward_modes=("TARGET_VERIFY",),
        span=at("NGRAMWorker", 234, 236),
        holder=sym(entry),
        arms=(
            Arm(
                "replay",
                SinkKind.GRAPH,
                VERIFY_GRAPH,
                chain(*hops, ("ModelRunner._forward_raw", 2463), ("CudaGraphRunner.replay", 866)),
            ),
            Arm("extend", SinkKind.EAGER, negate(VERIFY_GRAPH), chain(*hops, *EAGER_EXTEND)),
        ),
        graph_when=VERIFY_GRAPH,
        verdict=None,
        decisions=("raw", "can_run", "capture_mode"),
    )
    draft = Phase(
        name=PhaseName.DRAFT,
        role="draft",
        forward_modes=(),
        span=at("NGRAMWorker", 145),
        holder=sym(entry),
        arms=(),
        graph_when=any_of(),
        verdict=Verdict.NOT_RUN,
        note="drafts on the CPU",
    )
    return Worker(
        id=sym("NGRAMWorker"),
        name="NGRAMWorker",
        span=at("NGRAMWorker", 25, 285),
        mro=(sym("NGRAMWorker"),),
        entry=Entry("forward_batch_generation", sym("NGRAMWorker"), at("NGRAMWorker", 216, 290)),
        selected_when=atom("self.is_ngram()", AtomKind.LAUNCH, at("SpeculativeAlgorithm", 94)),
        selected_at=at("SpeculativeAlgorithm", 102),
        phases=(verify, draft),
    )


def eagle() -> Worker:
    selected = all_of(
        atom("self.is_eagle()", AtomKind.LAUNCH, at("SpeculativeAlgorithm", 75)),
        negate(
            atom(
                "server_args.enable_multi_layer_eagle",
                AtomKind.LAUNCH,
                at("SpeculativeAlgorithm", 60),
            )
        ),
        atom(
            "server_args.disable_overlap_schedule",
            AtomKind.LAUNCH,
            at("SpeculativeAlgorithm", 59),
        ),
    )
    target_prefill, draft_prefill = _prefill_phases()
    return Worker(
        id=sym("EAGLEWorker"),
        name="EAGLEWorker",
        span=at("EAGLEWorker", 78, 1030),
        mro=tuple(map(sym, ("EAGLEWorker", "TpModelWorker", "BaseTpWorker"))),
        entry=Entry("forward_batch_generation", sym("EAGLEWorker"), at("EAGLEWorker", 278, 337)),
        selected_when=selected,
        selected_at=at("SpeculativeAlgorithm", 83),
        phases=(
            target_prefill,
            draft_prefill,
            _draft_phase(),
            _verify_phase(),
            _draft_extend_phase(),
        ),
    )
