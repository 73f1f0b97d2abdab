"""Each fault is repaired, and the text is the one from before the fault."""

from __future__ import annotations

from pathlib import Path

import pytest

from specmap.codemap.remedy import FixReport, Outcome
from specmap.fixed import Request, fix_tree
from tests.fix.forks import FAULTS, MODEL_RUNNER, MODES, whole
from tests.review_tree import RUNNER, edit, edit_everywhere, plant


def fixed(folder: Path, *select: str, write: bool = False) -> FixReport:
    return fix_tree(Request(str(folder), select, write=write, use_cache=False)).report


def texts(folder: Path) -> dict[str, str]:
    return {str(p.relative_to(folder)): p.read_text("utf-8") for p in folder.rglob("*.py")}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_repaired_and_the_old_text_comes_back(name: str, tmp_path: Path) -> None:
    due, fault = FAULTS[name]
    before = texts(whole(tmp_path / "whole"))
    fork = whole(tmp_path / "fork")
    fault(fork)
    assert texts(fork) != before
    report = fixed(fork, write=True)
    assert [a.rewrite.id for a in report.applied] == [due]
    assert all(a.proven for a in report.applied)
    if name == "not-captured":  # the fork's own guard may stay: it agrees with the capture
        after = (fork / RUNNER).read_text("utf-8")
        assert "self.capture_forward_mode = ForwardMode.TARGET_VERIFY" in after
        assert "self.num_tokens_per_bs = model_runner.server_args.spec" in after
    else:
        assert texts(fork) == before


@pytest.mark.parametrize("name", ["constant-term", "not-captured", "bypass"])
def test_a_second_run_changes_nothing(name: str, tmp_path: Path) -> None:
    fork = whole(tmp_path / "fork")
    FAULTS[name][1](fork)
    fixed(fork, write=True)
    after = texts(fork)
    assert fixed(fork, write=True).applied == ()
    assert texts(fork) == after


def test_an_unbroken_tree_is_left_alone(tmp_path: Path) -> None:
    assert fixed(whole(tmp_path / "whole")).attempts == ()


def test_renamed_classes_and_an_extracted_method_make_no_difference(tmp_path: Path) -> None:
    fork = whole(tmp_path / "fork")
    edit_everywhere(fork, {"EagleVerify": "TreeChecker", "EAGLEWorker": "ForkWorker"})
    edit(
        fork, RUNNER,
        ("return forward_batch.batch_size <= self.max_bs\n",
         "return forward_batch.batch_size <= self.max_bs and self._is_flat(forward_batch)\n\n"
         "    def _is_flat(self, batch):\n"
         "        return batch.input_ids.numel() == batch.batch_size\n"),
    )  # fmt: skip
    report = fixed(fork)
    assert [a.rewrite.id for a in report.applied] == ["SPF101"]
    assert "and self._is_flat" not in report.after[RUNNER]


def test_a_method_of_the_mode_gains_verify(tmp_path: Path) -> None:
    fork = whole(tmp_path / "fork")
    text = (fork / MODES).read_text("utf-8")
    start = text.index("def is_cuda_graph")
    body = text[start:].split("\n\n")[0]
    edit(fork, MODES, (body, body.replace("ForwardMode.TARGET_VERIFY", "ForwardMode.IDLE")))
    report = fixed(fork)
    assert [a.rewrite.id for a in report.applied] == ["SPF103"]
    assert "self == ForwardMode.TARGET_VERIFY" in report.after[MODES]


def test_a_test_that_keeps_prefill_out_is_widened_and_not_removed(tmp_path: Path) -> None:
    fork = whole(tmp_path / "fork")
    edit(fork, MODEL_RUNNER, ("forward_mode.is_cuda_graph()", "forward_mode.is_decode()"))
    report = fixed(fork)
    assert (
        "is_decode() or forward_batch.forward_mode.is_target_verify())"
        in (report.after[MODEL_RUNNER])
    )


def test_a_verify_of_unknown_width_is_refused(tmp_path: Path) -> None:
    fork = plant(tmp_path / "fork")
    FAULTS["constant-term"][1](fork)
    report = fixed(fork)
    assert report.applied == ()
    assert [a.outcome for a in report.attempts] == [Outcome.REFUSED]
    assert "is not fixed" in report.attempts[0].reason


def test_a_term_is_not_taken_out_where_no_graph_was_captured(tmp_path: Path) -> None:
    fork = whole(tmp_path / "fork")
    FAULTS["not-captured"][1](fork)
    report = fixed(fork, "SPF101")
    assert [a.reason for a in report.attempts] == ["CudaGraphRunner captures no graph for verify"]


def test_a_flag_that_is_only_reported_is_no_cause(tmp_path: Path) -> None:
    fork = whole(tmp_path / "fork")
    edit(
        fork, "sglang/srt/speculative/eagle_verify.py",
        ("can_run_cuda_graph=result.can_run_cuda_graph", "can_run_cuda_graph=False"),
    )  # fmt: skip
    assert fixed(fork).applied == ()


def test_a_setting_turned_off_under_a_test_is_refused(tmp_path: Path) -> None:
    fork = whole(tmp_path / "fork")
    edit(
        fork, "sglang/srt/managers/scheduler.py",
        ("        self.tp_worker = TpModelWorker(server_args)\n",
         "        if server_args.page_size > 1:\n"
         "            server_args.disable_cuda_graph = True\n"
         "        self.tp_worker = TpModelWorker(server_args)\n"),
    )  # fmt: skip
    report = fixed(fork)
    assert report.applied == ()
    assert "server_args.page_size > 1" in report.attempts[0].reason
