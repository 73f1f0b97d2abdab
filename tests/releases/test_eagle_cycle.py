"""The decode cycle of EAGLEWorker in SGLang 0.5.9, read from its source.

Lines are those of ``speculative/eagle_worker.py`` where no other file is named.
"""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from specmap.codemap.condition import atoms_of
from specmap.codemap.graph import Arm, Phase
from specmap.codemap.source import qualname_of
from specmap.codemap.verdict import SinkKind, Verdict
from specmap.report import as_json
from tests.releases.lookup import SRT, class_named, normal, phase_named, place, worker_named
from tests.releases.trees import map_of

pytestmark = pytest.mark.releases

RELEASE = "0.5.9"
V1 = SRT + "speculative/eagle_worker.py"

METHODS = {
    "forward_batch_generation": 278,
    "forward_target_extend": 357,
    "draft": 532,
    "draft_forward": 615,
    "verify": 691,
    "forward_draft_extend": 862,
    "forward_draft_extend_after_decode": 902,
}

# cuda_graph_runner.py: what can_run (385-450) needs, as the names of line 444-450 or as the
# tests behind those names. The vote of the other ranks is folded into the first name (407).
SIX_TERMS = {
    "batch size": ("cuda_graph_bs <= self.max_bs", "graph_key in self.graphs", "is_bs_supported"),
    "vote of the ranks": ("forward_batch.can_run_dp_cuda_graph",),
    "encoder lengths": ("forward_batch.encoder_lens", "is_encoder_lens_supported"),
    "two batch overlap": ("forward_batch.can_run_tbo", "is_tbo_supported"),
    "hidden mode": ("requested_capture_hidden_mode", "capture_hidden_mode_matches"),
    "ngram width": ("forward_batch.input_ids.numel()", "is_ngram_supported"),
}


def phase(name: str) -> Phase:
    return phase_named(worker_named(map_of(RELEASE), "EAGLEWorker"), name)


def arms(name: str, kind: SinkKind) -> list[Arm]:
    return [arm for arm in phase(name).arms if arm.kind is kind]


def chain_of(arm: Arm) -> list[tuple[str, int]]:
    return [(qualname_of(symbol), line) for symbol, line in arm.chain]


def test_methods_of_the_cycle() -> None:
    methods = dict(class_named(map_of(RELEASE), "EAGLEWorker").methods)
    assert {name: methods.get(name) for name in METHODS} == METHODS


def test_phases_and_roles() -> None:
    worker = worker_named(map_of(RELEASE), "EAGLEWorker")
    assert {str(p.name): p.role for p in worker.phases} == {
        "target_prefill": "target",
        "draft_prefill": "draft",
        "draft": "draft",
        "verify": "target",
        "draft_extend": "draft",
    }


def test_verify_replays_the_target_runners_graph() -> None:
    assert [chain_of(arm) for arm in arms("verify", SinkKind.GRAPH)] == [
        [
            ("EAGLEWorker.forward_batch_generation", 316),  # self.verify(batch, spec_info)
            ("EAGLEWorker.verify", 716),  # self.target_worker.forward_batch_generation(
            ("TpModelWorker.forward_batch_generation", 456),  # self.model_runner.forward(
            ("ModelRunner.forward", 2401),  # self._forward_raw(
            ("ModelRunner._forward_raw", 2463),  # self.graph_runner.replay(
            ("CudaGraphRunner.replay", 866),  # self.graphs[graph_key].replay()
        ]
    ]
    (arm,) = arms("verify", SinkKind.GRAPH)
    assert place(map_of(RELEASE), arm.chain[-1][0]).line == 846


def test_verify_runs_eager_through_forward_extend() -> None:
    found = [chain_of(arm)[-2:] for arm in arms("verify", SinkKind.EAGER)]
    # model_runner.py:2500 ret, can_run_graph = self.forward_extend(, 2338 self.model.forward(
    assert [("ModelRunner._forward_raw", 2500), ("ModelRunner.forward_extend", 2338)] in found


@pytest.mark.parametrize("term", SIX_TERMS)
def test_condition_of_verify_holds_six_terms(term: str) -> None:
    texts = [atom.text for atom in atoms_of(phase("verify").graph_when)]
    assert any(word in text for text in texts for word in SIX_TERMS[term]), texts


def test_condition_of_verify_needs_the_runner() -> None:
    """model_runner.py:2131 leaves the runner None when graphs are disabled."""
    texts = [atom.text for atom in atoms_of(phase("verify").graph_when)]
    assert any("disable_cuda_graph" in text or text == "self.graph_runner" for text in texts)
    assert phase("verify").verdict is None


def test_route_decision_has_three_terms() -> None:
    """model_runner.py:2456-2460."""
    route = [
        d
        for d in map_of(RELEASE).decisions
        if d.kind == "route" and qualname_of(d.holder) == "ModelRunner._forward_raw"
    ]
    terms = {t.span.line: normal(t.text) for d in route for t in d.terms if t.span.line < 2461}
    assert terms[2458] == "self.graph_runner"
    assert terms[2459] == "self.graph_runner.can_run(forward_batch)"
    mode = terms.get(2457, terms.get(2454))
    assert mode in ("mode_check()", "forward_batch.forward_mode.is_cuda_graph")


def test_the_constant_belongs_to_prefill_and_is_only_reported() -> None:
    flags = [f for f in map_of(RELEASE).flags if (f.span.file, f.span.line) == (V1, 308)]
    assert [(str(f.status), str(f.phase), f.value, f.decides) for f in flags] == [
        ("constant", "target_prefill", False, False)
    ]
    assert [(g.span.line, g.branch) for g in flags[0].guards] == [(290, True)]
    assert "can_run_cuda_graph" in flags[0].name


def test_verify_has_no_constant_flag() -> None:
    found = [f for f in map_of(RELEASE).flags if f.span.file == V1 and str(f.phase) == "verify"]
    assert found
    assert not [f for f in found if f.value is not None]


@pytest.mark.parametrize("name", ["draft_prefill", "draft", "draft_extend"])
def test_the_draft_runner_has_no_graph_of_its_own(name: str) -> None:
    """111-112: disable_cuda_graph is True while the draft runner is built, restored at 186."""
    chains = [chain_of(arm) for arm in phase(name).arms]
    assert chains
    assert not [c for c in chains if ("CudaGraphRunner.replay", 866) in c]


def test_draft_prefill_is_always_eager() -> None:
    """895: the draft runner has no graph, and model_runner.py:1644 refuses a piecewise one."""
    assert phase("draft_prefill").verdict is Verdict.EAGER


@pytest.mark.parametrize(
    ("name", "call", "runner"),
    [
        # 557: self.cuda_graph_runner.replay(
        ("draft", ("EAGLEWorker.draft", 557), "EAGLEDraftCudaGraphRunner"),
        # 959: logits_output = self.cuda_graph_runner_for_draft_extend.replay(
        (
            "draft_extend",
            ("EAGLEWorker.forward_draft_extend_after_decode", 959),
            "EAGLEDraftExtendCudaGraphRunner",
        ),
    ],
)
def test_draft_graphs(name: str, call: tuple[str, int], runner: str) -> None:
    found = [chain_of(arm) for arm in arms(name, SinkKind.GRAPH)]
    assert found
    for chain in found:
        assert call in chain
        assert chain[chain.index(call) + 1][0] == f"{runner}.replay"


def test_prefill_of_the_target_never_replays_a_decode_graph() -> None:
    """forward_batch_info.py:160: EXTEND is no mode of is_cuda_graph."""
    assert phase("target_prefill").arms
    assert not arms("target_prefill", SinkKind.GRAPH)


def test_draft_forward_runs_captured_and_eager() -> None:
    """eagle_draft_cuda_graph_runner.py:297 captures it; 569 calls it eager."""
    shared = [s for s in map_of(RELEASE).shared if s.function == f"{V1}::EAGLEWorker.draft_forward"]
    assert [(s.captured_from.line, s.eager_from.line) for s in shared] == [(297, 569)]


def test_verify_has_a_static_shape() -> None:
    """cuda_graph_runner.py:287-290: the graph is captured for speculative_num_draft_tokens."""
    shape = phase("verify").static_shape
    assert shape is not None
    assert shape.fixed
    assert "draft_tokens" in shape.tokens_per_request


def command(*options: str) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "specmap", "scan", f"sglang=={RELEASE}", "-q", *options]
    return subprocess.run(words, capture_output=True, text=True, check=False)


def test_the_command_writes_the_same_map() -> None:
    result = command("--format", "json", "--output", "-")
    assert (result.returncode, result.stderr) == (0, "")
    assert as_json.load(result.stdout) == map_of(RELEASE)


def test_the_command_prints_the_cycle() -> None:
    result = command("--worker", "EAGLEWorker")
    assert (result.returncode, result.stderr) == (0, "")
    for name, line in METHODS.items():
        pattern = rf"\b{line}\b[^\n]*\b{name}\b"
        assert re.search(pattern, result.stdout), f"{name} {line} is not in the output"
