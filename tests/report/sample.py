"""A small code map of SGLang 0.5.9, written by hand."""

from __future__ import annotations

from itertools import pairwise

from specmap.codemap.graph import (
    CallEdge,
    ClassRecord,
    CodeMap,
    Decision,
    DoubleDecision,
    EdgeStatus,
    Factory,
    Function,
    SharedCode,
    Sink,
    Term,
    Worker,
)
from specmap.codemap.source import SourceFile, Span, symbol_id
from specmap.codemap.verdict import PhaseName, SinkKind
from tests.report.sample_facts import (
    CAPTURES_VERIFY,
    CLASSES,
    ENTRY,
    FILES,
    IN_DECODE,
    IN_EXTEND,
    LINES,
    RAW_TO_GRAPH,
    at,
    guard,
    sym,
)
from tests.report.sample_findings import attributes, flags, syncs
from tests.report.sample_workers import eagle, ngram


def _edges(workers: tuple[Worker, ...]) -> tuple[CallEdge, ...]:
    """Every hop of every chain, then a few calls that lie on none."""
    guards = {
        ("EAGLEWorker.forward_batch_generation", 291): (IN_EXTEND,),
        ("EAGLEWorker.forward_batch_generation", 297): (IN_EXTEND,),
        ("EAGLEWorker.forward_batch_generation", 314): (IN_DECODE,),
        ("EAGLEWorker.forward_batch_generation", 316): (IN_DECODE,),
        ("EAGLEWorker.forward_batch_generation", 329): (
            IN_DECODE,
            guard(
                ENTRY,
                "self.server_args.enable_dp_attention or batch.spec_info.verified_id.shape[0] > 0",
                325,
                True,
            ),
        ),
        ("ModelRunner._forward_raw", 2463): (
            guard("ModelRunner._forward_raw", "can_run_graph", 2462, True),
        ),
        ("ModelRunner._forward_raw", 2500): (
            guard("ModelRunner._forward_raw", "can_run_graph", 2462, False),
            guard(
                "ModelRunner._forward_raw",
                "forward_batch.forward_mode.is_extend(include_draft_extend_v2=True)",
                2499,
                True,
            ),
        ),
        ("EAGLEWorker.draft", 557): (guard("EAGLEWorker.draft", "can_cuda_graph", 556, True),),
        ("EAGLEWorker.draft", 569): (guard("EAGLEWorker.draft", "can_cuda_graph", 556, False),),
    }
    hops: dict[tuple[str, int, str], set[PhaseName]] = {}
    for worker in workers:
        for phase in worker.phases:
            for arm in phase.arms:
                for (caller, line), (callee, _) in pairwise(arm.chain):
                    hops.setdefault((caller, line, callee), set()).add(phase.name)
    made = [
        CallEdge(
            caller=caller,
            span=Span(caller.partition("::")[0], line, line),
            text=f"{callee.rpartition('.')[2]}(...)",
            callees=(callee,),
            status=EdgeStatus.STATIC,
            guards=guards.get((caller.partition("::")[2], line), ()),
            rules=("attribute",),
            phases=tuple(sorted(phases)),
        )
        for (caller, line, callee), phases in sorted(hops.items())
    ]
    return (*made, *_side_calls())


def _side_calls() -> tuple[CallEdge, ...]:
    def edge(caller: str, line: int, text: str, callee: str | None, **more: object) -> CallEdge:
        status = more.pop("status", EdgeStatus.STATIC)
        assert isinstance(status, EdgeStatus)
        return CallEdge(
            caller=sym(caller),
            span=at(caller, line),
            text=text,
            callees=() if callee is None else (sym(callee),),
            status=status,
            phases=() if caller.startswith("Scheduler") else (PhaseName.VERIFY,),
            reason=str(more.get("reason", "")),
        )

    return (
        edge("Scheduler.run_batch", 2368, "self.model_worker.forward_batch_generation", ENTRY),
        edge(
            "ModelRunner._forward_raw",
            2459,
            "self.graph_runner.can_run",
            "CudaGraphRunner.can_run",
        ),
        edge(
            "EAGLEWorker.draft",
            553,
            "self.cuda_graph_runner.can_run",
            "EAGLEDraftCudaGraphRunner.can_run",
        ),
        edge("EAGLEWorker.verify", 748, "spec_info.verify", "EagleVerifyInput.verify"),
        edge(
            "EAGLEWorker.verify",
            767,
            "hook(batch)",
            None,
            status=EdgeStatus.UNRESOLVED,
            reason="value of a plugin registry",
        ),
        edge(
            "EAGLEWorker.forward_draft_extend_after_decode",
            970,
            "self.draft_model_runner.attn_backend.init_forward_metadata",
            None,
            status=EdgeStatus.BOUNDARY,
            reason="attention backend",
        ),
    )


def _decisions() -> tuple[Decision, ...]:
    both = (sym("EAGLEWorker"), sym("NGRAMWorker"))

    def term(text: str, holder: str, line: int, of: str = "") -> Term:
        return Term(text, at(holder, line), True, of)

    return (
        Decision(
            "raw",
            "route",
            sym("ModelRunner._forward_raw"),
            at("ModelRunner", 2456, 2460),
            RAW_TO_GRAPH,
            (
                term("mode_check()", "ModelRunner", 2457),
                term("self.graph_runner", "ModelRunner", 2458),
                term("self.graph_runner.can_run(forward_batch)", "ModelRunner", 2459),
            ),
            (PhaseName.VERIFY,),
            both,
        ),
        Decision(
            "can_run",
            "can_run",
            sym("CudaGraphRunner.can_run"),
            at("CudaGraphRunner", 444, 450),
            "is_bs_supported and is_encoder_lens_supported and is_tbo_supported and "
            "capture_hidden_mode_matches and is_ngram_supported",
            (
                term("cuda_graph_bs <= self.max_bs", "CudaGraphRunner", 403, "is_bs_supported"),
                term(
                    "forward_batch.can_run_dp_cuda_graph", "CudaGraphRunner", 407, "is_bs_supported"
                ),
                term("is_encoder_lens_supported", "CudaGraphRunner", 412),
                term("is_tbo_supported", "CudaGraphRunner", 431),
                term("capture_hidden_mode_matches", "CudaGraphRunner", 427),
                term("is_ngram_supported", "CudaGraphRunner", 435),
            ),
            (PhaseName.VERIFY,),
            both,
        ),
        Decision(
            "capture_mode",
            "capture",
            sym("CudaGraphRunner.__init__"),
            at("CudaGraphRunner", 280, 282),
            CAPTURES_VERIFY,
            (term(CAPTURES_VERIFY, "CudaGraphRunner", 280),),
            (PhaseName.VERIFY,),
            both,
        ),
        Decision(
            "draft",
            "route",
            sym("EAGLEWorker.draft"),
            at("EAGLEWorker", 553, 555),
            "self.cuda_graph_runner and self.cuda_graph_runner.can_run(forward_batch)",
            (
                term("self.cuda_graph_runner", "EAGLEWorker", 553),
                term("self.cuda_graph_runner.can_run(forward_batch)", "EAGLEWorker", 553),
            ),
            (PhaseName.DRAFT,),
            both[:1],
        ),
        Decision(
            "draft_extend",
            "route",
            sym("EAGLEWorker.forward_draft_extend_after_decode"),
            at("EAGLEWorker", 954, 957),
            "self.cuda_graph_runner_for_draft_extend and "
            "self.cuda_graph_runner_for_draft_extend.can_run(forward_batch)",
            (term("self.cuda_graph_runner_for_draft_extend", "EAGLEWorker", 955),),
            (PhaseName.DRAFT_EXTEND,),
            both[:1],
        ),
    )


def _sinks() -> tuple[Sink, ...]:
    def sink(name: str, kind: SinkKind, holder: str, line: int, text: str) -> Sink:
        return Sink(name, kind, sym(holder), at(holder, line), text)

    graph, eager = SinkKind.GRAPH, SinkKind.EAGER
    return (
        sink("replay", graph, "CudaGraphRunner.replay", 866, "self.graphs[graph_key].replay()"),
        sink(
            "piecewise",
            SinkKind.PIECEWISE,
            "PiecewiseCudaGraphRunner.replay",
            707,
            "self.model_runner.model.forward(...)",
        ),
        sink("extend", eager, "ModelRunner.forward_extend", 2338, "self.model.forward(...)"),
        sink("decode", eager, "ModelRunner.forward_decode", 2300, "self.model.forward(...)"),
        sink(
            "draft_replay",
            graph,
            "EAGLEDraftCudaGraphRunner._replay",
            176,
            "self.graphs[self.bs].replay()",
        ),
        sink(
            "draft_extend_replay",
            graph,
            "EAGLEDraftExtendCudaGraphRunner._replay",
            230,
            "self.graphs[self.bs].replay()",
        ),
    )


def sample_map() -> CodeMap:
    """Return a map of two workers, with real lines and texts."""
    workers = (eagle(), ngram())
    return CodeMap(
        target="sglang==0.5.9",
        release="0.5.9",
        commit=None,
        platform="cuda",
        workers=workers,
        classes=tuple(
            ClassRecord(
                id=sym(name),
                name=name,
                span=at(name, line),
                bases=tuple(mro[1:2]),
                mro=tuple(map(sym, mro)),
                methods=tuple(
                    (method.partition(".")[2], row)
                    for method, row in LINES.items()
                    if method.startswith(f"{name}.")
                ),
                overrides=("forward_batch_generation",) if name == "EAGLEWorker" else (),
            )
            for name, line, mro in CLASSES
        ),
        functions=tuple(
            Function(sym(name), name, at(name, line)) for name, line in sorted(LINES.items())
        ),
        edges=_edges(workers),
        decisions=_decisions(),
        sinks=_sinks(),
        flags=flags(),
        syncs=syncs(),
        attributes=attributes(),
        factories=(
            Factory(
                symbol_id(FILES["SpeculativeAlgorithm"], "SpeculativeAlgorithm.create_worker"),
                at("SpeculativeAlgorithm", 52),
                tuple((worker.id, worker.selected_when) for worker in workers),
                at("Scheduler", 561),
                ("a class of an out-of-tree platform",),
            ),
        ),
        shared=(
            SharedCode(
                sym("EAGLEWorker.draft_forward"),
                at("EAGLEDraftCudaGraphRunner", 297),
                at("EAGLEWorker", 569),
            ),
        ),
        doubles=(
            DoubleDecision(
                sym("EAGLEWorker"),
                PhaseName.DRAFT_EXTEND,
                at("EAGLEWorker", 954),
                at("ModelRunner", 2456),
                ("self.cuda_graph_runner_for_draft_extend",),
                ("mode_check()",),
            ),
        ),
        files=tuple(SourceFile(file, "0" * 64) for file in sorted(set(FILES.values()))),
    )
