"""Verdicts for launch commands on real releases.

Where it says measured, an engine of that release ran on an H200 and its graph counters were
read; the others were read in the source at the lines named. None of them comes from specmap.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from specmap.codemap.verdict import Verdict
from specmap.report.options import RenderOptions
from specmap.report.outcome_text import render_outcome
from specmap.scan.launch.unknown import ArgumentError
from tests.releases.test_commands import FILES, taken_apart
from tests.releases.verdicts import (
    CHAIN,
    NGRAM,
    STANDALONE,
    TREE,
    outcome,
    phase,
    posted,
    verdicts,
)

pytestmark = pytest.mark.releases

TRITON = {**CHAIN, "attention_backend": "triton"}
V1 = {"disable_overlap_schedule": True}
ALL_GRAPH = ("GRAPH", "GRAPH", "GRAPH")
ALL_EAGER = ("EAGER", "EAGER", "EAGER")
ONLY_VERIFY = ("NOT_RUN", "GRAPH", "NOT_RUN")


@pytest.mark.parametrize(
    ("release", "values", "worker", "expected"),
    [
        ("0.5.12", TRITON, "EAGLEWorkerV2", ALL_GRAPH),
        ("0.5.12", {**TRITON, **V1}, "EAGLEWorker", ALL_GRAPH),
        ("0.5.12", {**TRITON, **V1, "disable_cuda_graph": True}, "EAGLEWorker", ALL_EAGER),
        ("0.5.12", NGRAM, "NGRAMWorker", ONLY_VERIFY),
        ("0.5.17", TRITON, "EAGLEWorkerV2", ALL_GRAPH),
        ("0.5.17", {**TRITON, "disable_cuda_graph": True}, "EAGLEWorkerV2", ALL_EAGER),
    ],
)
def test_measured(
    release: str, values: dict[str, object], worker: str, expected: tuple[str, str, str]
) -> None:
    found = outcome(release, values)
    assert found.worker is not None
    assert found.worker.name == worker
    assert verdicts(found) == expected
    assert found.findings is (expected == ALL_EAGER)


@pytest.mark.parametrize("extra", [V1, {}])
def test_measured_above_the_capture_limit(extra: dict[str, object]) -> None:
    values = {**TRITON, **extra, "cuda_graph_max_bs": 2}
    found = outcome("0.5.12", values, batch="bs=4")
    assert verdicts(found) == ALL_EAGER
    for name in ("draft", "verify", "draft_extend"):
        notes = [term.note for term in phase(found, name).deciding]
        assert "bs 4 > largest captured 2" in notes
        assert phase(found, name).ranges[1].first == 3
    assert verdicts(outcome("0.5.12", values, batch="bs=2")) == ALL_GRAPH


@pytest.mark.parametrize("off", ["disable_cuda_graph", "disable_decode_cuda_graph"])
def test_graphs_turned_off_0_5_16(off: str) -> None:
    """cuda_graph_setup.py:283 and eagle_worker_v2.py:382 ask what the server published."""
    found = outcome("0.5.16", {**TRITON, off: True})
    assert phase(found, "draft").verdict is Verdict.EAGER
    assert phase(found, "verify").verdict is Verdict.EAGER
    assert phase(found, "draft_extend").verdict is not Verdict.GRAPH


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        # piecewise_cuda_graph_runner.py:227 captures none, dflash_worker.py:1128 asks for all.
        ({"speculative_algorithm": "DFLASH"}, Verdict.EAGER),
        (STANDALONE, Verdict.PIECEWISE),
    ],
)
def test_target_prefill_by_the_hidden_states_it_asks_for_0_5_12(
    values: dict[str, object], verdict: Verdict
) -> None:
    values = {**values, "speculative_draft_model_path": "someone/draft"}
    assert phase(outcome("0.5.12", values), "target_prefill").verdict is verdict


def test_target_prefill_of_a_breakable_graph_0_5_12() -> None:
    """breakable_cuda_graph_runner.py:389: the layers are replayed, the logits are eager."""
    found = phase(
        outcome("0.5.12", {**TRITON, "enable_breakable_cuda_graph": True}), "target_prefill"
    )
    assert found.verdict is Verdict.PIECEWISE


def test_target_prefill_of_a_breakable_graph_0_5_16() -> None:
    """prefill_cuda_graph_runner.py:203 captures what an EAGLE target asks for."""
    assert phase(outcome("0.5.16", TRITON), "target_prefill").verdict is not Verdict.EAGER


@pytest.mark.parametrize(
    ("release", "backend", "verdict", "line"),
    [
        ("0.5.12", "flashinfer", Verdict.EAGER, 314),
        ("0.5.12", "fa3", Verdict.EAGER, 314),
        ("0.5.12", "triton", Verdict.GRAPH, None),
        ("0.5.23", "flashinfer", Verdict.GRAPH, None),
        ("0.5.23", "fa3", Verdict.GRAPH, None),
    ],
)
def test_draft_extend_by_backend(
    release: str, backend: str, verdict: Verdict, line: int | None
) -> None:
    found = phase(outcome(release, {**CHAIN, "attention_backend": backend}), "draft_extend")
    assert found.verdict is verdict
    if line is not None:
        assert found.deciding[0].span is not None
        assert found.deciding[0].span.line == line


def test_a_tree_runs_v1_and_says_why_0_5_12() -> None:
    found = outcome("0.5.12", TREE)
    assert found.worker is not None
    assert found.worker.name == "EAGLEWorker"
    [concern] = [c for c in found.concerns if c.kind == "worker-passed-over"]
    assert concern.message.startswith("EAGLEWorkerV2 is not taken: disable_overlap_schedule")
    assert "speculative_eagle_topk > 1" in concern.message
    assert concern.span is not None
    assert concern.span.line == 3754


@pytest.mark.parametrize(("value", "worker"), [("0", "EAGLEWorker"), ("1", "EAGLEWorkerV2")])
def test_the_variable_decides_0_5_9(value: str, worker: str) -> None:
    found = outcome("0.5.9", CHAIN, env={"SGLANG_ENABLE_SPEC_V2": value})
    assert found.worker is not None
    assert found.worker.name == worker


def test_without_the_variable_v1_0_5_9() -> None:
    found = outcome("0.5.9", CHAIN)
    assert found.worker is not None
    assert found.worker.name == "EAGLEWorker"
    assert any("SGLANG_ENABLE_SPEC_V2" in concern.message for concern in found.concerns)


def test_a_tree_in_v2_is_refused_0_5_9() -> None:
    found = outcome("0.5.9", TREE, env={"SGLANG_ENABLE_SPEC_V2": "1"})
    assert found.refusal is not None
    assert found.refusal.span.line == 2380
    assert found.workers == ()
    assert found.findings


@pytest.mark.parametrize(
    ("release", "gigabytes", "values", "worker", "expected"),
    [
        ("0.5.12", 80, CHAIN, "EAGLEWorkerV2", ("GRAPH", "GRAPH", "EAGER")),
        ("0.5.12", 141, TREE, "EAGLEWorker", ALL_GRAPH),
        (
            "0.5.12",
            80,
            {"speculative_algorithm": "EAGLE3"},
            "EAGLEWorkerV2",
            ("GRAPH", "GRAPH", "EAGER"),
        ),
        ("0.5.12", 141, NGRAM, "NGRAMWorker", ONLY_VERIFY),
        ("0.5.12", 80, {**STANDALONE, "disable_cuda_graph": True}, "StandaloneWorkerV2", ALL_EAGER),
        ("0.5.23", 80, CHAIN, "EAGLEWorkerV2", ALL_GRAPH),
        ("0.5.23", 141, TREE, "EAGLEWorkerV2", ALL_GRAPH),
        ("0.5.23", 141, NGRAM, "NGRAMWorker", ONLY_VERIFY),
        (
            "0.5.23",
            80,
            {**STANDALONE, "cuda_graph_max_bs_decode": 2},
            "StandaloneWorkerV2",
            ALL_GRAPH,
        ),
        (
            "0.5.23",
            80,
            {
                **CHAIN,
                "disable_cuda_graph": True,
                "cuda_graph_config": {"decode": {"backend": "full"}},
            },
            "EAGLEWorkerV2",
            ALL_GRAPH,
        ),
    ],
)
def test_worked_examples(
    release: str,
    gigabytes: int,
    values: dict[str, object],
    worker: str,
    expected: tuple[str, str, str],
) -> None:
    found = outcome(release, values, gigabytes=gigabytes)
    assert found.worker is not None
    assert found.worker.name == worker
    assert verdicts(found) == expected


def test_prefill_0_5_12() -> None:
    """Piecewise for a draft that needs no hidden states, model_runner.py:2971."""
    assert phase(outcome("0.5.12", NGRAM), "target_prefill").verdict is Verdict.PIECEWISE
    off = outcome("0.5.12", {**STANDALONE, "disable_cuda_graph": True})
    assert phase(off, "target_prefill").verdict is Verdict.PIECEWISE
    # A draft runner captures no prefill graph, model_runner.py:2978.
    assert phase(off, "draft_prefill").verdict is Verdict.EAGER


def test_prefill_graphs_off_0_5_23() -> None:
    """``--disable-cuda-graph`` takes the prefill graph, a decode backend does not bring it back."""
    values = {
        **CHAIN,
        "disable_cuda_graph": True,
        "cuda_graph_config": {"decode": {"backend": "full"}},
    }
    assert phase(outcome("0.5.23", values), "target_prefill").verdict is Verdict.EAGER


def test_user_report_2_admission_above_capture() -> None:
    """One L40 without flags: up to 4096 requests, graphs up to 32."""
    [concern] = outcome("0.5.17", {}, gigabytes=48, sm=89).concerns
    assert concern.failing
    assert "2048 to 4096 > largest captured bs 32" in concern.message


def test_user_report_2_with_speculation() -> None:
    found = outcome("0.5.12", TRITON, gigabytes=48, sm=89)
    messages = [c.message for c in found.concerns if c.failing]
    assert messages == [
        "admission 48 > largest captured bs 32 (1.5x); above 32 draft, verify and draft_extend "
        "run eager"
    ]
    assert found.findings


def test_user_report_3_a_copied_limit() -> None:
    """Graphs up to 2 and 20 requests at once: nothing replays, in the baseline neither."""
    tree = {
        **CHAIN,
        "speculative_num_steps": 6,
        "speculative_eagle_topk": 10,
        "speculative_num_draft_tokens": 32,
    }
    for values in ({**tree, "cuda_graph_max_bs": 2}, {"cuda_graph_max_bs": 2}):
        found = outcome("0.5.12", values, gigabytes=80, sm=80, concurrency=20)
        [concern] = [c for c in found.concerns if c.kind == "concurrency-above-capture"]
        assert "concurrency 20 > largest captured bs 2: 0% of steady steps" in concern.message
        assert found.captured.share == 0.1
    widths = [c.message for c in outcome("0.5.12", tree, concurrency=20).concerns]
    assert any("20 * 32 = 640 tokens" in message for message in widths)


def test_a_concurrency_asks_about_its_steady_batch() -> None:
    values = {**TRITON, "cuda_graph_max_bs": 2}
    found = outcome("0.5.12", values, concurrency=4)
    assert found.batch_size == 4
    assert verdicts(found) == ALL_EAGER
    assert phase(found, "verify").ranges[0].last == 2
    assert verdicts(outcome("0.5.12", values, concurrency=2)) == ALL_GRAPH
    assert verdicts(outcome("0.5.12", values, batch="bs=2", concurrency=4)) == ALL_GRAPH
    admitted = outcome("0.5.12", {**TRITON, "max_running_requests": 4}, concurrency=9)
    assert admitted.batch_size == 4


def test_user_report_11_sizes_count_requests() -> None:
    """Tokens of a verify step do not count against the captured sizes, requests do."""
    found = outcome("0.5.12", {**TRITON, "max_running_requests": 16})
    assert found.captured.sizes is not None
    assert max(found.captured.sizes) == 16
    assert not any(c.failing for c in found.concerns)
    assert any("16 * 4 = 64 tokens" in c.message for c in found.concerns)


def test_user_report_13_not_the_graphs() -> None:
    """H100 TP 8, EAGLE3 5/8/32, 48 at once: all phases replay."""
    values = {
        **CHAIN,
        "speculative_num_steps": 5,
        "speculative_eagle_topk": 8,
        "speculative_num_draft_tokens": 32,
        "tp_size": 8,
    }
    found = outcome("0.5.12", values, gigabytes=80, batch="bs=48", concurrency=48)
    assert verdicts(found) == ALL_GRAPH
    assert not found.findings
    assert found.captured.share == 1.0


def test_padding_off_needs_the_exact_size() -> None:
    """With padding off a batch size replays only if it was captured itself: 1 to the limit."""
    values = {**TRITON, "disable_cuda_graph_padding": True, "cuda_graph_max_bs": 2}
    assert verdicts(outcome("0.5.12", values, batch="bs=2")) == ALL_GRAPH
    found = outcome("0.5.12", values, batch="bs=3")
    assert verdicts(found) == ALL_EAGER
    assert any(term.note == "bs 3 not captured" for term in phase(found, "verify").deciding)


def test_one_step_drafts_nothing() -> None:
    """The last draft step runs no forward, eagle_worker_v2.py of 0.5.12."""
    values = {**TRITON, "speculative_num_steps": 1, "speculative_num_draft_tokens": 2}
    assert phase(outcome("0.5.12", values), "draft").verdict is Verdict.NOT_RUN


def test_a_batch_that_is_not_steady() -> None:
    values = {**TRITON, "tp_size": 2, "dp_size": 2, "enable_dp_attention": True}
    assert phase(outcome("0.5.12", values), "verify").verdict is Verdict.GRAPH
    vetoed = outcome("0.5.12", values, batch="bs=4,veto=yes")
    assert phase(vetoed, "verify").verdict is Verdict.EAGER
    unsure = outcome("0.5.12", values, batch="bs=4,veto=unknown")
    assert phase(unsure, "verify").verdict is Verdict.UNKNOWN


def test_without_the_gpu_a_batch_of_one_replays() -> None:
    """A runner with graphs captures something; how much needs the GPU's memory."""
    found = outcome("0.5.12", TRITON, gigabytes=None)
    assert verdicts(found) == ALL_GRAPH
    assert found.captured.sizes is None
    assert "GPU memory (--gpu-memory)" in found.missing
    assert phase(outcome("0.5.12", TRITON, gigabytes=None, batch="bs=40"), "verify").verdict is (
        Verdict.UNKNOWN
    )


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_posted_command(path: Path) -> None:
    """Each gets a verdict, or the list of what is missing."""
    head, text = taken_apart(path)
    if "error" in head:
        with pytest.raises(ArgumentError):
            posted(head["release"], text)
        return
    found = posted(head["release"], text)
    assert render_outcome(found, RenderOptions())
    if found.worker is None and found.refusal is None and found.workers:
        assert found.missing
    for worker in found.workers:
        assert worker.certain or worker.open_terms
        for one in worker.phases:
            assert one.verdict is not Verdict.UNKNOWN or one.open_terms or len(found.workers) > 1
