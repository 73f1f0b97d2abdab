"""Whose model a pass runs: the object that the pass is made on decides, not who asks for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from specmap.codemap.graph import CodeMap, Phase
from specmap.codemap.verdict import PhaseName, SinkKind
from tests.review_tree import DRAFT, VERIFY, edit, plant, scan

ASKED = "        result = self.target_worker.forward_batch_generation(batch, is_verify=True)\n"
USED = "        batch.spec_info = result.logits_output\n"
RESULT = "=result.logits_output,\n            can_run_cuda_graph=result.can_run_cuda_graph"
BATCH = "        fb = ForwardBatch.init_new(batch, self.target_worker.model_runner)\n"
FORWARD = "forward(fb.input_ids, fb.positions, fb)"
WAYS = {
    "the model of the target's runner": (
        f"        out = self.target_worker.model_runner.model.{FORWARD}\n",
        SinkKind.EAGER,
    ),
    "the model, called": (
        "        out = self.target_worker.model_runner.model(fb.input_ids, fb.positions, fb)\n",
        SinkKind.EAGER,
    ),
    "a local name": (
        f"        runner = self.target_worker.model_runner\n        out = runner.model.{FORWARD}\n",
        SinkKind.EAGER,
    ),
    "the graph of the target's graph runner": (
        "        out = self.target_worker.model_runner.graph_runner.graphs[1].replay()\n",
        SinkKind.GRAPH,
    ),
}


def phase(codemap: CodeMap, name: PhaseName) -> Phase:
    worker = next(w for w in codemap.workers if w.name == "EAGLEWorker")
    return next(p for p in worker.phases if p.name is name)


@pytest.mark.parametrize("way", WAYS)
def test_a_worker_that_runs_the_targets_model_itself_verifies(tmp_path: Path, way: str) -> None:
    code, kind = WAYS[way]
    folder = plant(tmp_path / "tree")
    edit(
        folder,
        VERIFY,
        (ASKED, BATCH + code),
        (USED, ""),
        (RESULT, "=out, can_run_cuda_graph=False"),
    )
    found = scan(folder)
    verify = phase(found, PhaseName.VERIFY)
    assert (verify.role, verify.forward_modes) == ("target", ("TARGET_VERIFY",))
    assert [arm.kind for arm in verify.arms] == [kind]
    assert verify.holder.endswith("EagleVerify.verify")
    assert phase(found, PhaseName.DRAFT).forward_modes == ("DECODE",)


def test_a_worker_that_runs_the_drafts_model_itself_drafts(tmp_path: Path) -> None:
    folder = plant(tmp_path / "tree")
    run = "self.draft_worker.model_runner.forward(forward_batch)\n            tokens"
    bare = "self.draft_worker.model_runner.model.forward(forward_batch)\n            tokens"
    edit(folder, DRAFT, (run, bare), ("out.logits_output", "out"))
    found = scan(folder)
    draft = phase(found, PhaseName.DRAFT)
    assert draft.role == "draft"
    assert {arm.sink.rpartition("::")[2].split(":")[0] for arm in draft.arms} == {
        "EAGLEDraftCudaGraphRunner.replay",
        "EagleDraft.draft_forward",
    }
    assert phase(found, PhaseName.VERIFY).role == "target"


@pytest.mark.parametrize("other", ["assert forward_batch is not None", "self.told = True"])
def test_a_batch_that_one_arm_makes_has_its_mode_after_both(tmp_path: Path, other: str) -> None:
    folder = plant(tmp_path / "tree")
    made = "            forward_batch = ForwardBatch.init_new(batch, self.model_runner)\n"
    edit(
        folder,
        "sglang/srt/managers/tp_worker.py",
        ("        if forward_batch is None:\n", "        if batch.reqs:\n"),
        (made, f"{made}        else:\n            {other}\n"),
    )
    found = scan(folder)
    assert phase(found, PhaseName.VERIFY).forward_modes == ("TARGET_VERIFY",)
    assert phase(found, PhaseName.DRAFT).forward_modes == ("DECODE",)
