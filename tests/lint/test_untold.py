"""A graph that the map lost track of is not called lost: what hides it is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from specmap.codemap.rule import Confidence
from tests.lint.test_losses import (
    MODEL_RUNNER,
    WORKER,
    fork,
    line_of,
    new,
    reviewed,
)
from tests.review_tree import DRAFT, VERIFY, edit

__all__ = ["fork"]

TP_WORKER = "sglang/srt/managers/tp_worker.py"
MADE = "self.graph_runner = CudaGraphRunner(self)"
PASS = "self.model_runner.forward(forward_batch)"

# Where the change stands, what it is, and what hides the graph.
HIDDEN = {
    "a runner from a package outside": (
        MODEL_RUNNER,
        ((MADE, "self.graph_runner = plugin.make_runner(self)"),
         ("from dataclasses", "import plugin\nfrom dataclasses")),
        "self.graph_runner = plugin",
    ),
    "a runner by a name of the launch": (
        MODEL_RUNNER,
        ((MADE, "self.graph_runner = getattr(runners, server_args.runner)(self)"),
         ("from dataclasses", "import runners\nfrom dataclasses")),
        "self.graph_runner = getattr",
    ),
    "a method by a name of the launch": (
        TP_WORKER,
        ((PASS, "getattr(self.model_runner, self.server_args.way)(forward_batch)"),),
        "out = getattr",
    ),
    "the replay by a name of the launch": (
        MODEL_RUNNER,
        (("self.graph_runner.replay(", "getattr(self.graph_runner, self.server_args.way)("),),
        "return ModelRunnerOutput(getattr",
    ),
    "a function outside in place of the pass": (
        TP_WORKER,
        ((PASS, PASS.replace("self.model_runner", "self.passes")),
         ("        self.server_args = server_args\n",
          "        self.server_args = server_args\n        self.passes = plugin.passes(self)\n"),
         ("class Tp", "import plugin\n\n\nclass Tp")),
        "out = self.passes",
    ),
}  # fmt: skip


@pytest.mark.parametrize("way", HIDDEN)
def test_what_hides_it_is_named(fork: Path, way: str) -> None:
    file, changes, at = HIDDEN[way]
    edit(fork / "python", file, *changes)
    report = reviewed()
    assert new(report) == [("SPM115", file, line_of(fork, file, at))]
    (finding,) = report.new
    assert finding.confidence is Confidence.MEDIUM
    assert finding.match.phases == ("verify",)
    assert {w.rpartition("::")[2] for w in finding.match.workers} == {"EAGLEWorker", "NGRAMWorker"}


def test_one_worker_is_wrapped_from_outside(fork: Path) -> None:
    wrapped = (
        "self.target_worker = target_worker",
        "self.target_worker = plugin.of(target_worker)",
    )
    edit(fork / "python", WORKER, wrapped, ("class EAGLE", "import plugin\n\n\nclass EAGLE"))
    report = reviewed()
    call = "self.target_worker.forward_batch_generation(batch, is_verify"
    assert new(report) == [("SPM115", VERIFY, line_of(fork, VERIFY, call))]
    assert [w.rpartition("::")[2] for w in report.new[0].match.workers] == ["EAGLEWorker"]


def test_a_loss_is_still_a_loss_beside_it(fork: Path) -> None:
    """The target's runner comes from outside, and the draft never asks its own."""
    file, changes, at = HIDDEN["a runner from a package outside"]
    edit(fork / "python", file, *changes)
    asked = "self.cuda_graph_runner.can_run(forward_batch)"
    edit(fork / "python", DRAFT, (asked, f"{asked} and forward_batch.batch_size < 0 and False"))
    lost, untold = sorted(reviewed().new, key=lambda f: f.match.phases)
    assert (lost.match.phases, lost.match.span.file) == (("draft",), DRAFT)
    assert lost.rule.id != "SPM115"
    assert (untold.rule.id, untold.match.phases) == ("SPM115", ("verify",))
    assert untold.match.span.line == line_of(fork, file, at)


def test_a_phase_that_is_called_no_more_hides_nothing(fork: Path) -> None:
    """A call of a library stands where the phase was: where that leads is known."""
    gone = ("        self.draft_extend(batch)\n", "        torch.cuda.nvtx.mark('end')\n")
    edit(fork / "python", WORKER, gone, ("from sglang", "import torch\nfrom sglang"))
    assert new(reviewed()) == []
