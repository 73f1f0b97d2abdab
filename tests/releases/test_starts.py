"""Launches that stop between the argument code and the first request, and ones that do not.

Each raise was read in the source at the line named.
"""

from __future__ import annotations

import pytest

from specmap.codemap.verdict import Verdict
from tests.releases.test_verdicts import ALL_EAGER, ALL_GRAPH
from tests.releases.verdicts import CHAIN, alone, outcome, verdicts

pytestmark = pytest.mark.releases

EAGLE = {**CHAIN, "speculative_algorithm": "EAGLE"}
FROZEN = {**CHAIN, "speculative_algorithm": "FROZEN_KV_MTP", "speculative_eagle_topk": 2}
CAPTURE = "sglang/srt/model_executor/cuda_graph_runner.py"
WORKER = "sglang/srt/speculative/eagle_worker.py"
RUNNER = "sglang/srt/model_executor/model_runner.py"


@pytest.mark.parametrize(
    ("release", "values", "file", "line"),
    [
        ("0.4.8", {"cuda_graph_max_bs": -1}, CAPTURE, 175),
        ("0.5.12", {"cuda_graph_max_bs": 0}, CAPTURE, 543),
        ("0.5.12", {"cuda_graph_max_bs": -1}, CAPTURE, 543),
        ("0.4.8", {"attention_backend": "cutlass_mla"}, WORKER, 251),
        ("0.4.8", {"attention_backend": "torch_native"}, WORKER, 251),
        ("0.5.1", {"attention_backend": "torch_native"}, WORKER, 307),
        (
            "0.5.1",
            {"attention_backend": "fa3", "decode_attention_backend": "triton"},
            RUNNER,
            1443,
        ),
        (
            "0.5.16",
            {**FROZEN, "attention_backend": "fa3"},
            "sglang/srt/speculative/frozen_kv_mtp_worker_v2.py",
            237,
        ),
    ],
)
def test_refused(release: str, values: dict[str, object], file: str, line: int) -> None:
    found = outcome(release, {**EAGLE, "attention_backend": "triton", **values})
    assert found.refusal is not None
    assert found.refusal.certain
    assert (found.refusal.span.file, found.refusal.span.line) == (file, line)
    assert not found.workers


def test_nothing_is_captured_where_graphs_are_off_0_5_12() -> None:
    values = {**EAGLE, "attention_backend": "triton", "cuda_graph_max_bs": 0}
    assert verdicts(outcome("0.5.12", {**values, "disable_cuda_graph": True})) == ALL_EAGER


def test_no_graph_of_an_empty_list_without_the_model_0_5_12() -> None:
    text = (
        "--model-path m --speculative-draft-model-path d --speculative-algorithm EAGLE "
        "--speculative-num-steps 3 --speculative-eagle-topk 1 --attention-backend triton "
        "--cuda-graph-max-bs 0"
    )
    found = alone("0.5.12", text, gpu_memory=80, sm=90)
    assert found.refusal is not None
    assert found.refusal.span.line == 543


@pytest.mark.parametrize("release", ["0.4.8", "0.5.1"])
def test_the_runner_chooses_a_backend(release: str) -> None:
    """model_runner.py:309 (0.4.8) and 382 (0.5.1): fa3 on Hopper, flashinfer for a tree."""
    assert verdicts(outcome(release, EAGLE)) == ALL_GRAPH
    tree = {"speculative_eagle_topk": 4, "speculative_num_draft_tokens": 8}
    assert verdicts(outcome(release, {**EAGLE, **tree}, batch="bs=4")) == ALL_GRAPH


def test_a_model_without_mla_extends_its_draft_in_flashinfer_0_5_1() -> None:
    """eagle_worker.py:181-190 asks the table that the runner fills; both ways give a backend."""
    assert verdicts(outcome("0.5.1", {**EAGLE, "attention_backend": "flashinfer"})) == ALL_GRAPH


def test_captured_sizes_0_4_8() -> None:
    """cuda_graph_runner.py:151-178, on 80 GB: none above the requests that are admitted.

    server_args.py:451 gives speculation 48 of them, and model_runner.py:294 hands the setting on.
    """
    values = {**EAGLE, "attention_backend": "triton"}
    listed = (*range(1, 9), *range(10, 33, 2), 40, 48)
    assert outcome("0.4.8", values, gigabytes=80).captured.sizes == listed
    few = outcome("0.4.8", {**values, "max_running_requests": 9}, gigabytes=80)
    assert few.captured.sizes == tuple(range(1, 10))


@pytest.mark.parametrize(
    "values",
    [
        {"tp_size": 0},
        {"tp_size": -1},
        {"speculative_num_steps": -1},
        {"speculative_eagle_topk": 4, "speculative_num_draft_tokens": -3},
    ],
)
def test_a_count_below_all_code_is_not_known_0_5_9(values: dict[str, object]) -> None:
    """Nothing refuses them, and nothing was written for them: engine.py:933 makes no rank."""
    found = outcome("0.5.9", {**EAGLE, "attention_backend": "triton", **values})
    if found.refusal is None:
        assert {p.verdict for w in found.workers for p in w.phases if p.could_replay} == {
            Verdict.UNKNOWN
        }
