"""Releases compared; what changed was read in both sources by hand."""

from __future__ import annotations

from functools import cache

import pytest

from specmap.codemap.verdict import PhaseName
from specmap.compare.diff import compare_maps
from specmap.compare.model import Change, DecisionChange, MapDiff
from specmap.pipeline import scan_tree
from specmap.report.diff import DiffOptions, render_diff

pytestmark = pytest.mark.releases

RUNNER_0_5_23 = "sglang/srt/model_executor/runner/decode_cuda_graph_runner.py"


@cache
def compared(old: str, new: str) -> MapDiff:
    return compare_maps(scan_tree(f"sglang=={old}"), scan_tree(f"sglang=={new}"))


def early() -> MapDiff:
    return compared("0.5.9", "0.5.12")


def late() -> MapDiff:
    return compared("0.5.12", "0.5.23")


def workers(found: MapDiff, change: Change) -> set[str]:
    return {worker.name for worker in found.workers if worker.change is change}


def decision(found: MapDiff, holder: str) -> DecisionChange:
    (changed,) = [d for d in found.decisions if d.holder == holder and d.kind != "route"]
    return changed


def terms(changed: DecisionChange, change: Change) -> dict[str, int]:
    """Return text and line of the terms that a decision gained, lost or writes otherwise."""
    return {term.text: term.span.line for term in changed.terms if term.change is change}


def test_workers_from_0_5_9_to_0_5_12() -> None:
    assert workers(early(), Change.ADDED) == {"DFlashWorker", "FrozenKVMTPWorker"}
    assert workers(early(), Change.REMOVED) == set()


def test_workers_from_0_5_12_to_0_5_23() -> None:
    """eagle_worker.py is gone since 0.5.13, and with it every worker of the first version."""
    assert workers(late(), Change.REMOVED) == {
        "EAGLEWorker", "MultiLayerEagleWorker", "StandaloneWorker",
    }  # fmt: skip
    assert workers(late(), Change.ADDED) == {"DSparkWorkerV2", "UnoWorkerV2"}
    renamed = {(w.was, w.name) for w in late().workers if w.change is Change.RENAMED}
    assert renamed == {
        ("DFlashWorker", "DFlashWorkerV2"), ("FrozenKVMTPWorker", "FrozenKVMTPWorkerV2"),
    }  # fmt: skip


def test_piecewise_graphs_refuse_verify_since_0_5_12() -> None:
    """0.5.12 piecewise_cuda_graph_runner.py:465 returns False for TARGET_VERIFY."""
    (verify,) = [p for p in early().phases if p.phase is PhaseName.VERIFY]
    assert verify.lost == ("piecewise",)
    assert {"EAGLEWorker", "EAGLEWorkerV2", "NGRAMWorker"} <= set(verify.workers)
    changed = decision(early(), "PiecewiseCudaGraphRunner.can_run")
    gained = terms(changed, Change.ADDED)
    assert gained["forward_batch.forward_mode.is_target_verify()"] == 465


def test_the_target_runner_refuses_replaced_embeddings_since_0_5_12() -> None:
    changed = decision(early(), "CudaGraphRunner.can_run")
    assert terms(changed, Change.ADDED) == {"forward_batch.replace_embeds is not None": 767}
    assert terms(changed, Change.REMOVED) == {}


def test_out_of_tree_platforms_bring_their_runner_since_0_5_12() -> None:
    changed = decision(early(), "ModelRunner.init_device_graphs")
    assert terms(changed, Change.ADDED)["current_platform.is_out_of_tree()"] == 2947


def test_draft_extend_asks_another_backend_since_0_5_12() -> None:
    """0.5.9 asked the decode backend (eagle_worker_v2.py:282, 286), 0.5.12 its own (:314)."""
    (types,) = early().types
    assert (types.phase, set(types.workers)) == (
        PhaseName.DRAFT_EXTEND, {"EAGLEWorkerV2", "StandaloneWorkerV2"},
    )  # fmt: skip
    assert types.added == (
        "AiterMultiStepDraftBackend (hip)", "TRTLLMMLABackend (cuda, musa)",
        "TritonAttnBackend (cuda, musa)",
    )  # fmt: skip
    assert types.removed == (
        "TRTLLMMLAMultiStepDraftBackend (cuda)", "TritonMultiStepDraftBackend (cuda)",
    )  # fmt: skip


def test_draft_extend_is_captured_for_more_backends_in_0_5_23() -> None:
    """The lists grew from release to release: eagle_worker_v2.py:567-600 of 0.5.23."""
    (types,) = late().types
    assert types.phase is PhaseName.DRAFT_EXTEND
    assert set(types.added) == {
        "DeepseekSparseAttnBackend (cuda, hip, musa)", "DeepseekV4AttnBackend (cuda, musa)",
        "DeepseekV4HipRadixBackend (hip)", "FlashAttentionBackend (cuda)",
        "FlashInferAttnBackend (cuda, musa)", "FlashMLABackend (cuda)",
        "QwenSparseAttnBackend (cuda, hip, musa)", "TRTLLMHAAttnBackend (cuda, musa)",
    }  # fmt: skip
    assert types.removed == ()


def test_a_runner_decides_for_the_phases_that_it_replays() -> None:
    changed = decision(late(), "EAGLEDraftExtendCudaGraphRunner.can_run_graph")
    assert changed.phases == (PhaseName.DRAFT_EXTEND,)
    changed = decision(late(), "DecodeCudaGraphRunner.can_run_graph")
    assert PhaseName.TARGET_PREFILL not in changed.phases


def test_the_layout_moved_in_0_5_14() -> None:
    names = {(name.kind, name.was, name.now.partition(" of ")[0]) for name in late().names}
    folder = "sglang/srt/model_executor"
    runner = f"{folder}/runner/decode_cuda_graph_runner.py"
    assert ("file", f"{folder}/cuda_graph_runner.py", runner) in names
    assert ("method", "replay", "execute") in names


def test_the_renamed_runner_of_0_5_23_and_its_new_terms() -> None:
    changed = decision(late(), "DecodeCudaGraphRunner.can_run_graph")
    assert (changed.change, changed.was) == (Change.CHANGED, "CudaGraphRunner.can_run")
    gained = terms(changed, Change.ADDED)
    assert gained["spec_info.num_tokens_per_req != self.captured_req_width"] == 867
    assert gained["self._can_run_ragged_verify_graph(forward_batch, ragged_layout)"] == 856
    renamed = {t.was: t.text for t in changed.terms if t.change is Change.RENAMED}
    assert renamed["forward_batch.can_run_dp_cuda_graph"] == (
        "forward_batch.can_run_decode_cuda_graph"
    )


def test_the_hidden_mode_fell_back_and_raises_now() -> None:
    """0.5.12 cuda_graph_runner.py:813 refused the graph; 0.5.23 :1516 raises RuntimeError."""
    changed = decision(late(), "DecodeCudaGraphRunner.can_run_graph")
    (lost,) = [term for term in changed.terms if term.error is not None]
    assert lost.text == "requested_capture_hidden_mode == self.capture_hidden_mode"
    assert lost.error is not None
    assert (lost.error.file, lost.error.line) == (RUNNER_0_5_23, 1516)


@pytest.mark.parametrize(
    ("holder", "width"),
    [("EAGLEDraftCudaGraphRunner", 346), ("EAGLEDraftExtendCudaGraphRunner", 327)],
)
def test_draft_graphs_ask_for_the_captured_width(holder: str, width: int) -> None:
    changed = decision(late(), f"{holder}.can_run_graph")
    assert changed.was == f"{holder}.can_run"
    gained = terms(changed, Change.ADDED)
    assert gained["spec_info.num_tokens_per_req != self.captured_req_width"] == width


def test_a_variable_turns_the_draft_extend_graph_off() -> None:
    changed = decision(late(), "EagleDraftWorker._capture_cuda_graphs")
    assert changed.was == "EagleDraftWorker.init_cuda_graphs"
    gained = terms(changed, Change.ADDED)
    assert gained["envs.SGLANG_DISABLE_DRAFT_EXTEND_CUDA_GRAPH.get()"] == 627


def test_frozen_workers_have_no_draft_extend_forward_any_more() -> None:
    (change,) = [
        phase for phase in late().phases
        if phase.phase is PhaseName.DRAFT_EXTEND and "FrozenKVMTPWorkerV2" in phase.workers
    ]  # fmt: skip
    assert (change.before, change.after) == (("eager",), ("not run",))


def test_backends_that_were_renamed() -> None:
    names = {(name.was, name.now) for name in late().names}
    assert ("NativeSparseAttnBackend", "DeepseekSparseAttnBackend") in names
    assert ("compute_spec_v2_logprobs", "compute_spec_logprobs") in names


def test_attributes_that_were_renamed() -> None:
    """0.5.9 eagle_info.py:269 and 0.5.12 eagle_info.py:287 read the same attribute."""
    names = {name.was: name.now for name in early().names if name.kind == "name"}
    assert names["retrive_index"] == "retrieve_index"
    assert names["accept_length_per_req_cpu"] == "num_correct_drafts_per_req_cpu"
    assert not [s for s in early().syncs if s.operation == "self.retrieve_index.tolist()"
                and s.holder == "EagleVerifyInput.verify"]  # fmt: skip


def test_the_dflash_host_synchronisation_of_every_step_is_a_difference() -> None:
    """User report 6: ``lengths.max().item()`` came with DFlash, between 0.5.9 and 0.5.12."""
    (sync,) = [s for s in early().syncs if s.operation.endswith("lengths.max().item()")]
    assert (sync.change, sync.holder) == (
        Change.ADDED, "DFlashWorker._gather_req_to_token_segments",
    )  # fmt: skip
    assert sync.with_worker


@pytest.mark.parametrize("found", [early, late])
def test_the_text_stays_short_and_the_comment_fits_github(found: object) -> None:
    assert callable(found)
    text = render_diff(found(), "text", DiffOptions())
    assert len(text.splitlines()) <= 110
    assert len(render_diff(found(), "markdown", DiffOptions())) <= 65_536
