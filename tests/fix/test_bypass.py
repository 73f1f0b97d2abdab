"""Verify that calls a half of a pass: the result keeps its shape, the arguments are kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from specmap.codemap.remedy import FixReport
from specmap.fixed import Request, fix_tree
from tests.fix.forks import MODEL_RUNNER, whole
from tests.review_tree import VERIFY, edit

CALL = "        result = self.target_worker.forward_batch_generation(batch, is_verify=True)\n"
PAIR = (
    "        can_run_graph = self.prefill_runner is not None\n"
    "        if can_run_graph:\n"
    "            return (self.prefill_runner.replay(forward_batch), can_run_graph)\n"
    "        ret = self.model.forward(\n"
    "            forward_batch.input_ids, forward_batch.positions, forward_batch\n        )\n"
    "        return (ret, can_run_graph)\n"
)
LOGITS = (
    "        return self.model.forward(\n"
    "            forward_batch.input_ids, forward_batch.positions, forward_batch\n        )\n"
)
RESULT = "        result = GenerationBatchResult(logits_output=logits, can_run_cuda_graph=flag)\n"
FORWARD = "self.target_worker.model_runner.forward(batch"


def fork(folder: Path, call: str, half: str = PAIR) -> Path:
    """A tree whose runner has a half of a pass, which verify calls."""
    whole(folder)
    edit(
        folder, MODEL_RUNNER,
        ("        self.graph_runner = None\n",
         "        self.graph_runner = None\n        self.prefill_runner = None\n"),
        ("    def forward(self, forward_batch: ForwardBatch) -> ModelRunnerOutput:\n",
         "    def forward_extend(self, forward_batch: ForwardBatch, timer=None, planned=False):\n"
         f"{half}\n"
         "    def forward(self, forward_batch: ForwardBatch, timer=None) -> ModelRunnerOutput:\n"),
    )  # fmt: skip
    edit(folder, VERIFY, (CALL, f"{call}{RESULT}" if "flag" in call else call))
    return folder


def run(folder: Path) -> FixReport:
    return fix_tree(Request(str(folder), ("SPF105",), use_cache=False)).report


RUNNER_CALL = "self.target_worker.model_runner.forward_extend"


@pytest.mark.parametrize(
    ("call", "after"),
    [
        (
            f"        logits, flag = {RUNNER_CALL}(batch)\n",
            f"        verify_output = {FORWARD})\n"
            "        logits, flag = (verify_output.logits_output, verify_output.can_run_graph)\n",
        ),
        (
            f"        logits = {RUNNER_CALL}(batch)[0]\n        flag = False\n",
            f"        logits = {FORWARD}).logits_output\n        flag = False\n",
        ),
        (
            f"        # the pass\n        out = {RUNNER_CALL}(batch, timer=self.timer)\n"
            "        logits, flag = out\n",
            f"        # the pass\n        verify_output = {FORWARD}, timer=self.timer)\n"
            "        out = (verify_output.logits_output, verify_output.can_run_graph)\n"
            "        logits, flag = out\n",
        ),
        (
            f"        logits, whether_it_replayed_its_graph = {RUNNER_CALL}(batch)\n"
            "        flag = whether_it_replayed_its_graph\n",
            f"        verify_output = {FORWARD})\n"
            "        logits, whether_it_replayed_its_graph = (\n"
            "            verify_output.logits_output,\n"
            "            verify_output.can_run_graph,\n        )\n"
            "        flag = whether_it_replayed_its_graph\n",
        ),
        (
            "        runner = self.target_worker.model_runner\n"
            "        logits, flag = runner.forward_extend(forward_batch=batch)\n",
            "        runner = self.target_worker.model_runner\n"
            "        verify_output = runner.forward(batch)\n"
            "        logits, flag = (verify_output.logits_output, verify_output.can_run_graph)\n",
        ),
    ],
)
def test_the_result_of_a_pair_keeps_its_shape(call: str, after: str, tmp_path: Path) -> None:
    report = run(fork(tmp_path / "fork", call))
    assert [a.rewrite.id for a in report.applied] == ["SPF105"]
    assert f"{after}{RESULT}" in report.after[VERIFY]


def test_logits_alone_stay_logits_alone(tmp_path: Path) -> None:
    call = f"        logits = {RUNNER_CALL}(batch)\n        flag = False\n"
    report = run(fork(tmp_path / "fork", call, LOGITS))
    assert f"        logits = {FORWARD}).logits_output\n        flag" in report.after[VERIFY]


def test_a_helper_returns_what_it_returned(tmp_path: Path) -> None:
    folder = fork(tmp_path / "fork", "        logits, flag = self._run(batch)\n")
    helper = f"    def _run(self, batch):\n        return {RUNNER_CALL}(batch)\n\n"
    edit(folder, VERIFY, ("    def verify(", f"{helper}    def verify("))
    after = (
        f"        verify_output = {FORWARD})\n"
        "        return (verify_output.logits_output, verify_output.can_run_graph)\n"
    )
    assert after in run(folder).after[VERIFY]


def planned(folder: Path, plan: str) -> Path:
    """Both passes can be told that the metadata stands; the worker has planned it."""
    call = (
        f"        self._plan(batch)\n        logits, flag = {RUNNER_CALL}(batch, skip_plan=True)\n"
    )
    fork(folder, f"        self._plan(batch)\n{call}")
    edit(
        folder, MODEL_RUNNER,
        ("timer=None, planned=False)", "skip_attn_backend_init=False)"),
        ("timer=None) -> Model", "skip_attn_backend_init=False) -> Model"),
    )  # fmt: skip
    helper = (
        f"    def _plan(self, batch):\n        runner = self.target_worker.model_runner\n{plan}\n"
    )
    edit(folder, VERIFY, ("    def verify(", f"{helper}    def verify("))
    edit(folder, VERIFY, ("skip_plan=True", "skip_attn_backend_init=True"))
    return folder


@pytest.mark.parametrize(
    ("plan", "given"),
    [
        ("        runner.attn_backend.init_forward_metadata(batch)\n", ""),
        (
            "        if runner.graph_runner and runner.graph_runner.can_run(batch):\n"
            "            runner.graph_runner.replay_prepare(batch)\n",
            ", skip_attn_backend_init=True",
        ),
    ],
)
def test_what_was_planned_for_the_eager_pass_is_planned_again(
    plan: str, given: str, tmp_path: Path
) -> None:
    """A replay without a plan of its own would read what the last one left."""
    report = run(planned(tmp_path / "fork", plan))
    assert [a.rewrite.id for a in report.applied] == ["SPF105"]
    assert f"self.target_worker.model_runner.forward(batch{given})" in " ".join(
        report.after[VERIFY].replace("(\n            ", "(").replace("\n        )", ")").split()
    )


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (f"logits, flag = {RUNNER_CALL}(batch, planned=True)", "forward takes no planned"),
        (f"logits, flag = {RUNNER_CALL}(batch, **self.more)", "does not name"),
        (f"logits, flag = reversed({RUNNER_CALL}(batch))", "used inside an expression"),
    ],
)
def test_what_would_not_be_the_same_is_refused(call: str, reason: str, tmp_path: Path) -> None:
    report = run(fork(tmp_path / "fork", f"        {call}\n"))
    assert report.after == {}
    assert [reason in a.reason for a in report.attempts] == [True]


def test_returns_that_do_not_agree_are_refused(tmp_path: Path) -> None:
    half = f"        if timer:\n            return None\n{LOGITS}"
    call = f"        logits = {RUNNER_CALL}(batch)\n        flag = False\n"
    report = run(fork(tmp_path / "fork", call, half))
    assert [a.reason for a in report.attempts] == ["what the call returns is not known"]
