"""Which pass a graph flag speaks of, and whether anybody reads it."""

from __future__ import annotations

from pathlib import Path

import pytest

from specmap.codemap.graph import CodeMap, Flag, FlagStatus
from tests.review_tree import DRAFT, edit, plant, scan

RUNNER = "self.draft_worker.model_runner"
PREPARE = f"""
    def prepare(self, batch: ScheduleBatch, runner):
        forward_batch = ForwardBatch.init_new(batch, runner)
        can_cuda_graph = self.cuda_graph_runner and self.cuda_graph_runner.can_run(forward_batch)
        return forward_batch, can_cuda_graph

    def draft(self, batch: ScheduleBatch):
        batch.forward_mode = ForwardMode.DECODE
        forward_batch, can_cuda_graph = self.prepare(batch, {RUNNER})
"""
CONSTANT = f"""
        forward_batch = ForwardBatch.init_new(batch, {RUNNER})
        forward_batch.can_run_dp_cuda_graph = False
"""


def without_pass(folder: Path, method: str, new: str) -> CodeMap:
    """Scan the tree with a draft method whose body is replaced: it starts no pass."""
    plant(folder)
    text = (folder / DRAFT).read_text("utf-8")
    start = text.index(f"    def {method}(")
    end = text.find("\n    def ", start + 1)
    old = text[start:] if end < 0 else text[start : end + 1]
    edit(folder, DRAFT, (old, new))
    return scan(folder)


def named(codemap: CodeMap, holder: str, name: str) -> Flag:
    (flag,) = (f for f in codemap.flags if f.holder.endswith(holder) and f.name == name)
    return flag


def test_a_flag_that_no_pass_asks_is_of_the_model_that_its_batch_was_made_for(
    tmp_path: Path,
) -> None:
    found = without_pass(
        tmp_path / "tree", "draft", PREPARE.strip("\n") + "\n        return []\n\n"
    )
    assert named(found, ".prepare", "can_cuda_graph").phase == "draft"
    assert named(found, ".prepare", "can_run_cuda_graph").phase == "draft"
    unpacked = named(found, ".draft", "can_cuda_graph")
    assert (unpacked.phase, unpacked.status) == ("draft", FlagStatus.DROPPED)
    assert not unpacked.decides


def test_an_unpacked_flag_that_is_read_is_handed_on(tmp_path: Path) -> None:
    reads = PREPARE.strip("\n") + "\n        return [can_cuda_graph]\n\n"
    flag = named(without_pass(tmp_path / "tree", "draft", reads), ".draft", "can_cuda_graph")
    assert (flag.phase, flag.status) == ("draft", FlagStatus.PROPAGATED)


@pytest.mark.parametrize("method", ["draft", "draft_extend"])
def test_a_constant_on_a_batch_without_a_pass_is_of_that_place_on_the_cycle(
    tmp_path: Path, method: str
) -> None:
    body = f"    def {method}(self, batch: ScheduleBatch):{CONSTANT}        return []\n\n"
    flag = named(without_pass(tmp_path / "tree", method, body), method, "can_run_dp_cuda_graph")
    assert flag.phase == method
