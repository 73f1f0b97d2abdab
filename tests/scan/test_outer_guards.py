"""Settings around the call of a phase, and attributes that some classes lack."""

from __future__ import annotations

from pathlib import Path

import pytest

from specmap.codemap.condition import render
from specmap.codemap.graph import CodeMap
from specmap.codemap.verdict import PhaseName
from tests.review_tree import edit, plant, scan

WORKER = "sglang/srt/speculative/eagle_worker.py"
MODEL_RUNNER = "sglang/srt/model_executor/model_runner.py"
CALL = "        self.draft_extend(batch)\n"


def ways(codemap: CodeMap, name: PhaseName) -> dict[str, str]:
    """The ways that a phase of the worker can take, each with its condition."""
    worker = next(w for w in codemap.workers if w.name == "EAGLEWorker")
    phase = next(p for p in worker.phases if p.name is name)
    return {arm.kind.value: render(arm.condition) for arm in phase.arms}


@pytest.mark.parametrize(
    ("guard", "stands"),
    [
        ("not self.server_args.enable_dp_attention", "not server_args.enable_dp_attention"),
        (
            "not (self.speculative_num_steps == 0 and self.server_args.enable_dp_attention)",
            "enable_dp_attention",
        ),
        ("batch.reqs", ""),
        ("self.wanted(self.server_args.enable_dp_attention)", ""),
    ],
)
def test_settings_around_the_call_of_a_phase(tmp_path: Path, guard: str, stands: str) -> None:
    folder = plant(tmp_path / "t")
    before = ways(scan(folder), PhaseName.DRAFT_EXTEND)
    edit(folder, WORKER, (CALL, f"        if {guard}:\n    {CALL}"))
    found = ways(scan(folder), PhaseName.DRAFT_EXTEND)
    if not stands:
        assert found == before
        return
    assert found.keys() == before.keys()
    assert all(stands in text for text in found.values()), found


def test_an_attribute_that_one_class_lacks_is_the_default_there(tmp_path: Path) -> None:
    folder = plant(tmp_path / "t")
    backend = "TritonAttnBackend(self)"
    edit(
        folder,
        MODEL_RUNNER,
        (
            "class ModelRunner:\n",
            "class Picky:\n    def allows(self, batch):\n        return False\n\n\n"
            "class ModelRunner:\n",
        ),
        (backend, f"{backend} if server_args.disable_overlap_schedule else Picky()"),
        (
            "        can_run_graph = bool(\n",
            '        allows = getattr(self.attn_backend, "allows", None)\n'
            "        can_run_graph = bool(\n",
        ),
        (
            "            and self.graph_runner.can_run(forward_batch)\n",
            "            and self.graph_runner.can_run(forward_batch)\n"
            "            and (allows is None or allows(forward_batch))\n",
        ),
    )
    found = ways(scan(folder), PhaseName.VERIFY)
    assert "graph" in found, found
    assert "server_args.disable_overlap_schedule" in found["graph"]
    assert "not server_args.disable_overlap_schedule" not in found["graph"]
