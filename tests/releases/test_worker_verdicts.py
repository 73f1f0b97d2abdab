"""Verdicts of the workers beside EAGLE, and of passes that leave their graph.

Read in the source at the lines named; v1 STANDALONE was measured on an H200.
"""

from __future__ import annotations

import pytest

from specmap.codemap.verdict import Verdict
from tests.releases.test_verdicts import ALL_EAGER, ALL_GRAPH, TRITON, V1
from tests.releases.trees import map_of
from tests.releases.verdicts import (
    CHAIN,
    NGRAM,
    STANDALONE,
    TREE,
    alone,
    outcome,
    phase,
    verdicts,
)

pytestmark = pytest.mark.releases


def test_worked_prefill() -> None:
    """0.5.12 captures no hidden states, 0.5.23 all of them (prefill_cuda_graph_runner.py:423)."""
    assert phase(outcome("0.5.12", CHAIN, gigabytes=80), "target_prefill").verdict is Verdict.EAGER
    for values in (CHAIN, TREE, NGRAM, STANDALONE):
        found = phase(outcome("0.5.23", values), "target_prefill")
        assert found.verdict is Verdict.PIECEWISE, values


def test_above_the_captured_sizes_0_5_23() -> None:
    """The prefill graph takes no verify batch (prefill_cuda_graph_runner.py:1397), and holds
    only the last hidden states of a draft, where draft extend asks for all (:419)."""
    found = outcome("0.5.23", {**TRITON, "cuda_graph_max_bs_decode": 2}, batch="bs=4")
    assert verdicts(found) == ALL_EAGER
    assert verdicts(outcome("0.5.23", {**TRITON, "cuda_graph_max_bs_decode": 2})) == ALL_GRAPH


def test_v1_standalone_0_5_12() -> None:
    """Measured: replays below the capture limit, eager above it."""
    values = {**STANDALONE, **V1, "attention_backend": "triton"}
    assert verdicts(outcome("0.5.12", values)) == ALL_GRAPH
    limited = outcome("0.5.12", {**values, "cuda_graph_max_bs": 2}, batch="bs=4")
    assert verdicts(limited) == ALL_EAGER


DRAFTED = "--model-path some/model --speculative-draft-model-path some/draft "


@pytest.mark.parametrize(
    ("text", "worker", "expected"),
    [
        ("DFLASH --attention-backend triton", "DFlashWorkerV2", ("GRAPH", "GRAPH", "NOT_RUN")),
        ("DSPARK --attention-backend triton", "DSparkWorkerV2", ("GRAPH", "GRAPH", "NOT_RUN")),
        (
            "FROZEN_KV_MTP --speculative-num-steps 3 --speculative-eagle-topk 1 "
            "--speculative-num-draft-tokens 4 --attention-backend triton",
            "FrozenKVMTPWorkerV2",
            ("GRAPH", "GRAPH", "NOT_RUN"),
        ),
    ],
)
def test_other_workers_0_5_23(text: str, worker: str, expected: tuple[str, str, str]) -> None:
    """Their drafts run in the ordinary decode runner of the draft; none extends its draft."""
    found = alone("0.5.23", f"{DRAFTED} --speculative-algorithm {text}")
    assert found.worker is not None
    assert found.worker.name == worker
    assert verdicts(found) == expected
    off = alone("0.5.23", f"{DRAFTED} --speculative-algorithm {text} --disable-cuda-graph")
    assert verdicts(off)[:2] == ("EAGER", "EAGER")


def test_uno_0_5_23() -> None:
    """Draft and verify are two passes of the target; there is no draft model."""
    text = (
        "--model-path m --speculative-algorithm UNO --uno-lora-path l "
        "--speculative-num-draft-tokens 4"
    )
    found = alone("0.5.23", text, sm=90)
    assert found.worker is not None
    assert found.worker.name == "UnoWorkerV2"
    assert verdicts(found) == ("GRAPH", "GRAPH", "NOT_RUN")
    assert phase(found, "draft").role == "target"


def test_multi_layer_workers_draft_nothing() -> None:
    """Their draft() only keeps the books; the draft runs as draft extend."""
    for release in ("0.5.9", "0.5.23"):
        worker = next(w for w in map_of(release).workers if w.name == "MultiLayerEagleWorkerV2")
        modes = {one.name.value: one.forward_modes for one in worker.phases}
        assert modes["draft"] == ()
        assert modes["verify"] == ("TARGET_VERIFY",)
        assert modes["draft_extend"] == ("DRAFT_EXTEND_V2",)


@pytest.mark.parametrize("release", ["0.5.9", "0.5.12", "0.5.23"])
def test_verify_runs_in_no_other_mode(release: str) -> None:
    for worker in map_of(release).workers:
        for one in worker.phases:
            if one.name.value == "verify" and one.arms:
                assert one.forward_modes == ("TARGET_VERIFY",), worker.name


def test_the_draft_on_rocm_0_5_9() -> None:
    """``get_device`` says "cuda" on ROCm too (utils/common.py:2026): eagle_worker.py:242-256."""
    assert verdicts(outcome("0.5.9", TRITON, sm=None, batch="bs=4", platform="hip")) == ALL_GRAPH
