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


TESTED = """
        if can_cuda_graph:
            return self.cuda_graph_runner.replay(forward_batch)
"""
AGAIN = """
    def prepare_again(self, batch, runner):
        made, can_cuda_graph = self.prepare(batch, runner)
        return made, can_cuda_graph

    def draft("""


@pytest.mark.parametrize("through", [False, True])
@pytest.mark.parametrize("tested", [False, True])
def test_a_flag_decides_where_a_caller_tests_what_it_is_given(
    tmp_path: Path, through: bool, tested: bool
) -> None:
    body = (
        PREPARE.strip("\n") + (TESTED if tested else "\n") + "        return [can_cuda_graph]\n\n"
    )
    if through:
        body = body.replace("self.prepare(batch", "self.prepare_again(batch")
        body = body.replace("\n    def draft(", AGAIN)
    found = without_pass(tmp_path / "tree", "draft", body)
    assert named(found, ".prepare", "can_cuda_graph").decides is tested


TESTED_BEFORE = """
        can_cuda_graph = self.cuda_graph_runner and self.cuda_graph_runner.can_run(forward_batch)
        if can_cuda_graph:
            return self.cuda_graph_runner.replay(forward_batch)
        can_cuda_graph = False
        return GenerationBatchResult(can_run_cuda_graph=can_cuda_graph)
"""
IN_A_LOOP = """
        can_cuda_graph = self.cuda_graph_runner and self.cuda_graph_runner.can_run(forward_batch)
        for step in range(self.speculative_num_steps):
            if can_cuda_graph:
                return self.cuda_graph_runner.replay(forward_batch)
            can_cuda_graph = False
        return []
"""


@pytest.mark.parametrize(("body", "decides"), [(TESTED_BEFORE, False), (IN_A_LOOP, True)])
def test_a_flag_decides_only_what_is_tested_after_it(
    tmp_path: Path, body: str, decides: bool
) -> None:
    head = "    def draft(self, batch: ScheduleBatch):\n"
    made = f"        forward_batch = ForwardBatch.init_new(batch, {RUNNER})"
    found = without_pass(tmp_path / "tree", "draft", f"{head}{made}{body}\n")
    flags = [f for f in found.flags if f.holder.endswith(".draft") and f.value is False]
    assert [f.decides for f in flags] == [decides]
