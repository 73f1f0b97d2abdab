"""Flags, host synchronisations and attributes of the hand-written map."""

from __future__ import annotations

from specmap.codemap.graph import Assignment, Attribute, Flag, FlagStatus, HostSync, SyncKind
from tests.report.sample_facts import ENTRY, IN_DECODE, IN_EXTEND, at, guard, sym


def flags() -> tuple[Flag, ...]:
    mine = (sym("EAGLEWorker"),)
    return (
        Flag(
            name="can_run_cuda_graph",
            span=at(ENTRY, 308),
            holder=sym(ENTRY),
            status=FlagStatus.CONSTANT,
            phase="target_prefill",
            decides=False,
            value=False,
            text="can_run_cuda_graph=False",
            guards=(IN_EXTEND,),
            workers=mine,
        ),
        Flag(
            name="can_run_cuda_graph",
            span=at(ENTRY, 336),
            holder=sym(ENTRY),
            status=FlagStatus.PROPAGATED,
            phase="verify",
            decides=False,
            text="can_run_cuda_graph=can_run_cuda_graph",
            guards=(IN_DECODE,),
            source_line=721,
            source_chain=(316, 721, 716),
            workers=mine,
        ),
        Flag(
            name="can_run_cuda_graph",
            span=at(ENTRY, 373),
            holder=sym("EAGLEWorker.forward_target_extend"),
            status=FlagStatus.DROPPED,
            phase="target_prefill",
            decides=False,
            text="batch_result.can_run_cuda_graph",
            guards=(IN_EXTEND,),
            source_line=373,
            result_line=308,
            workers=mine,
        ),
        Flag(
            name="can_run_dp_cuda_graph",
            span=at(ENTRY, 561),
            holder=sym("EAGLEWorker.draft"),
            status=FlagStatus.CONSTANT,
            phase="draft",
            decides=True,
            value=False,
            text="forward_batch.can_run_dp_cuda_graph = False",
            guards=(guard("EAGLEWorker.draft", "can_cuda_graph", 556, False),),
            workers=mine,
        ),
    )


def syncs() -> tuple[HostSync, ...]:
    def sync(
        holder: str, line: int, kind: SyncKind, operation: str, label: str, between: str
    ) -> HostSync:
        return HostSync(
            span=at(holder, line),
            holder=sym(holder),
            kind=kind,
            operation=operation,
            device="cpu" if kind is SyncKind.NONE else "cuda",
            label=label,
            rule="item",
            phase_between=between,
            captured=False,
            where="between passes",
            workers=(sym("EAGLEWorker"),),
        )

    return (
        sync(
            "EAGLEWorker._draft_preprocess_decode",
            518,
            SyncKind.EXPLICIT,
            "torch.sum(batch.seq_lens).item()",
            "removable",
            "draft_extend->draft",
        ),
        sync(
            "EagleVerifyInput.verify",
            390,
            SyncKind.EXPLICIT,
            "accept_index.tolist()",
            "unavoidable",
            "verify->draft_extend",
        ),
        sync(
            "EagleVerifyInput.verify",
            438,
            SyncKind.IMPLICIT,
            "accept_index[accept_index != -1]",
            "removable",
            "verify->draft_extend",
        ),
        sync(
            "EAGLEWorker.forward_draft_extend_after_decode",
            949,
            SyncKind.NONE,
            "forward_batch.seq_lens_cpu.sum().item()",
            "cpu-tensor",
            "verify->draft_extend",
        ),
    )


def attributes() -> tuple[Attribute, ...]:
    runner = "ModelRunner"
    return (
        Attribute(
            "ModelRunner.graph_runner",
            (
                Assignment(at(runner, 2121), sym(runner), "None", (None,)),
                Assignment(
                    at(runner, 2156),
                    sym(runner),
                    "graph_runners[self.device](self)",
                    (sym("CudaGraphRunner"),),
                ),
            ),
        ),
        Attribute(
            "ServerArgs.disable_cuda_graph",
            (
                Assignment(
                    at("EAGLEWorker", 112),
                    sym("EAGLEWorker"),
                    "True",
                    (sym("EAGLEWorker"),),
                    from_outside=True,
                    restored_line=186,
                ),
            ),
        ),
    )
