from __future__ import annotations

from typing import Any

import pytest

from specmap.trace.reasons import choose, phrase
from specmap.traced import trace_names

NAMES = trace_names()


@pytest.mark.parametrize(
    ("conjunct", "operands", "said"),
    [
        # CudaGraphRunner.can_run, 0.5.9 cuda_graph_runner.py:398-402
        ("cuda_graph_bs <= self.max_bs", {"cuda_graph_bs": 4, "self.max_bs": 2},
         "bs 4 > largest captured 2"),
        ("graph_key in self.graphs", {"graph_key": 3}, "bs 3 not captured"),
        ("forward_batch.batch_size <= self.max_bs",
         {"forward_batch.batch_size": 4, "self.max_bs": 2}, "bs 4 > largest captured 2"),
        ("cuda_graph_bs<=self.max_bs", {"cuda_graph_bs": 4}, "bs 4 > largest captured ?"),
        ("self.graph_runner is not None", {"self.graph_runner": None},
         "no graph was captured (self.graph_runner is None)"),
        ("self.cuda_graph_runner", {}, "no graph was captured (self.cuda_graph_runner is None)"),
        ("len(self.cuda_graph_runner_list)", {"self.cuda_graph_runner_list": 0},
         "no graph was captured (self.cuda_graph_runner_list is None)"),
        ("cuda_graph_runner is None", {"cuda_graph_runner": None},
         "no graph was captured (cuda_graph_runner is None)"),
        # model_runner.py:2038 of 0.5.23, EagerRunner.can_run_graph
        ("not isinstance(self.prefill_cuda_graph_runner, EagerRunner)",
         {"not isinstance(self.prefill_cuda_graph_runner, EagerRunner)": False},
         "no graph was captured (self.prefill_cuda_graph_runner is of class EagerRunner)"),
        ("return False", {"return False": False}, "this runner never replays"),
        ("not isinstance(spec_info, Other)", {}, "not isinstance(spec_info, Other) is false"),
        ("forward_batch.can_run_tbo", {"forward_batch.can_run_tbo": False},
         "forward_batch.can_run_tbo is false"),
        ("num_tokens <= self.max_num_tokens", {"num_tokens": 9, "self.max_num_tokens": 8},
         "num_tokens 9 > self.max_num_tokens 8"),
        ("spec_info.num_tokens_per_req != self.captured_req_width",
         {"spec_info.num_tokens_per_req": 4, "self.captured_req_width": 4},
         "spec_info.num_tokens_per_req 4 == self.captured_req_width 4"),
        ("self.num_heads > 1", {"self.num_heads": 1}, "self.num_heads 1 <= 1"),
        ("a <= b", {"a": 2}, "a <= b is false (a = 2)"),
        ("a < b < c", {"a": 1, "b": 2, "c": 2}, "a < b < c is false (a = 1, b = 2, c = 2)"),
        ("", {}, "this runner never replays"),
        ("a strange ( text", {}, "a strange ( text is false"),
    ],
)  # fmt: skip
def test_a_test_that_failed_is_said_with_its_numbers(
    conjunct: str, operands: dict[str, Any], said: str
) -> None:
    item = {"conjunct": conjunct, "operands": operands}
    assert phrase(item, "verify", NAMES, {}) == said


@pytest.mark.parametrize(
    ("phase", "arguments", "said"),
    [
        ("verify", {"disable_cuda_graph": True}, "disabled (disable_cuda_graph)"),
        ("draft_prefill", {"disable_cuda_graph": True}, "disabled (disable_cuda_graph)"),
        ("verify", {"disable_decode_cuda_graph": True}, "disabled (disable_decode_cuda_graph)"),
        ("target_prefill", {"disable_decode_cuda_graph": True}, "no graph was captured"),
        ("target_prefill", {"disable_piecewise_cuda_graph": True},
         "disabled (disable_piecewise_cuda_graph)"),
        ("verify", {"disable_piecewise_cuda_graph": True}, "no graph was captured"),
        ("verify", {"disable_cuda_graph": False}, "no graph was captured"),
        ("verify", {"cuda_graph_backend_decode": "disabled"},
         "disabled (cuda_graph_backend_decode)"),
        ("verify", {"cuda_graph_backend_decode": "full"}, "no graph was captured"),
        ("verify", {}, "no graph was captured"),
    ],
)  # fmt: skip
def test_without_a_decision_the_launch_says_why(
    phase: str, arguments: dict[str, Any], said: str
) -> None:
    assert phrase(None, phase, NAMES, arguments) == said


@pytest.mark.parametrize(
    "conjunct",
    [
        "self.graph_runner", "self.graph_runner is not None", "graph_runner is None", "False",
        "return False", "not isinstance(self.graph_runner, EagerRunner)",
    ],
)  # fmt: skip
def test_a_runner_that_is_not_there_was_disabled(conjunct: str) -> None:
    item = {"conjunct": conjunct, "operands": {"self.graph_runner": None}}
    said = phrase(item, "verify", NAMES, {"disable_cuda_graph": True})
    assert said == "disabled (disable_cuda_graph)"


def test_a_full_runner_is_not_blamed_on_the_launch() -> None:
    item = {
        "conjunct": "cuda_graph_bs <= self.max_bs",
        "operands": {"cuda_graph_bs": 4, "self.max_bs": 2},
    }
    said = phrase(item, "verify", NAMES, {"disable_cuda_graph": True})
    assert said == "bs 4 > largest captured 2"


def test_the_telling_reason_is_chosen() -> None:
    mode = {"conjunct": "mode_check()"}
    call = {"conjunct": "self.runner.can_run(batch)", "call": True}
    first, second = ({"conjunct": one, "inside": "can_run"} for one in "ab")
    assert choose([mode, call, first, second], NAMES) is first
    assert choose([mode, call], NAMES) is call
    assert choose([mode], NAMES) is mode
    assert choose([], NAMES) is None


def test_a_runner_that_was_overruled_is_not_blamed_on_the_next_one() -> None:
    # Two H200: a plugin answered for CudaGraphRunner.can_run, whose own tests all held.
    call = {"conjunct": "self.graph_runner.can_run(batch)", "call": True, "inside": "_forward_raw"}
    later = {"conjunct": "self.piecewise_cuda_graph_runner is not None", "inside": "forward_extend"}
    assert choose([call, later], NAMES) is call
    # A fork on an H200: the last term of can_run asks a method that the tracer does not watch.
    helper = {"conjunct": "self._mask_fits(batch)", "call": True, "inside": "can_run"}
    assert choose([helper, call, later], NAMES) is helper
    tests = {"conjunct": "bs <= self.max_bs", "inside": "can_run"}
    assert choose([tests, call, later], NAMES) is tests
    assert choose([call, tests], NAMES) is tests
