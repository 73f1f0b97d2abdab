"""Sixteen edges that need types, eight on each of two releases.

They are the yardstick that other analysers were measured with: the best of them find 8/8 on
0.5.9 and 5/8 on 0.5.23, where they stop at abstract bases. Lines read from the source.
"""

from __future__ import annotations

from typing import NamedTuple

import pytest

from specmap.codemap.graph import EdgeStatus
from tests.releases.lookup import SRT, Place, edges_at, places
from tests.releases.trees import map_of

pytestmark = pytest.mark.releases

V1 = SRT + "speculative/eagle_worker.py"
V2 = SRT + "speculative/eagle_worker_v2.py"
COMMON = SRT + "speculative/eagle_worker_common.py"
INFO = SRT + "speculative/eagle_info.py"
DRAFT_RUNNER = SRT + "speculative/eagle_draft_cuda_graph_runner.py"
TP_WORKER = SRT + "managers/tp_worker.py"
MODEL_RUNNER = SRT + "model_executor/model_runner.py"
V1_RUNNER = SRT + "model_executor/cuda_graph_runner.py"
DECODE_RUNNER = SRT + "model_executor/runner/decode_cuda_graph_runner.py"
EAGER_RUNNER = SRT + "model_executor/runner/eager_runner.py"


class Edge(NamedTuple):
    """A call site (release, file, line, caller), its one callee and what is right as well."""

    name: str
    release: str
    file: str
    line: int
    caller: str
    callee: Place
    also: frozenset[Place] = frozenset()


FORWARD_059 = Place("ModelRunner.forward", MODEL_RUNNER, 2387)
FORWARD_0523 = Place("ModelRunner.forward", MODEL_RUNNER, 1813)
TARGET_059 = Place("TpModelWorker.forward_batch_generation", TP_WORKER, 431)
TARGET_0523 = Place("TpModelWorker.forward_batch_generation", TP_WORKER, 622)

# The type alone allows the eager runner here; its can_run_graph is always False, so the
# guard on line 2006 keeps it out.
EAGER_EXECUTE = frozenset({Place("EagerRunner.execute", EAGER_RUNNER, 210)})

EDGES = [
    # 316: self.verify(batch, spec_info)
    Edge("E1", "0.5.9", V1, 316, "EAGLEWorker.forward_batch_generation",
         Place("EAGLEWorker.verify", V1, 691)),
    # 716: batch_result = self.target_worker.forward_batch_generation(
    Edge("E2", "0.5.9", V1, 716, "EAGLEWorker.verify", TARGET_059),
    # 693: spec_info.prepare_for_verify(batch, self.page_size)
    Edge("E3", "0.5.9", V1, 693, "EAGLEWorker.verify",
         Place("EagleVerifyInput.prepare_for_verify", INFO, 104)),
    # 748: res: EagleVerifyOutput = spec_info.verify(
    Edge("E4", "0.5.9", V1, 748, "EAGLEWorker.verify",
         Place("EagleVerifyInput.verify", INFO, 216)),
    # 557: parent_list, top_scores_index, draft_tokens = self.cuda_graph_runner.replay(
    Edge("E5", "0.5.9", V1, 557, "EAGLEWorker.draft",
         Place("EAGLEDraftCudaGraphRunner.replay", DRAFT_RUNNER, 319)),
    # 456: out = self.model_runner.forward(
    Edge("E6", "0.5.9", TP_WORKER, 456, "TpModelWorker.forward_batch_generation", FORWARD_059),
    # 2463: ret = self.graph_runner.replay(
    Edge("E7", "0.5.9", MODEL_RUNNER, 2463, "ModelRunner._forward_raw",
         Place("CudaGraphRunner.replay", V1_RUNNER, 846)),
    # 670: logits_output = self.draft_model_runner.forward(
    Edge("E8", "0.5.9", V1, 670, "EAGLEWorker.draft_forward", FORWARD_059),
    # 1483: batch_output = self.verify(
    Edge("E1", "0.5.23", V2, 1483, "EAGLEWorkerV2.forward_batch_generation",
         Place("EAGLEWorkerV2.verify", V2, 1979)),
    # 654: forward_batch_output = target_worker.forward_batch_generation(
    Edge("E2'", "0.5.23", COMMON, 654, "run_eagle_verify", TARGET_0523),
    # 1980: return run_eagle_verify(
    Edge("E3'", "0.5.23", V2, 1980, "EAGLEWorkerV2.verify", Place("run_eagle_verify", COMMON, 547)),
    # 1480: verify_input: EagleVerifyInput = self.draft_worker.draft(batch)
    Edge("E4'", "0.5.23", V2, 1480, "EAGLEWorkerV2.forward_batch_generation",
         Place("EagleDraftWorker.draft", V2, 660)),
    # 695: self.cuda_graph_runner.execute(forward_batch)
    Edge("E5'", "0.5.23", V2, 695, "EagleDraftWorker.draft",
         Place("EAGLEDraftCudaGraphRunner.execute", DRAFT_RUNNER, 570)),
    # 675: out = self.model_runner.forward(
    Edge("E6", "0.5.23", TP_WORKER, 675, "TpModelWorker.forward_batch_generation", FORWARD_0523),
    # 2007: ret = self.decode_cuda_graph_runner.execute(
    Edge("E7'", "0.5.23", MODEL_RUNNER, 2007, "ModelRunner._forward_raw",
         Place("DecodeCudaGraphRunner.execute", DECODE_RUNNER, 1981), EAGER_EXECUTE),
    # 847: logits_output = self.draft_runner.forward(
    Edge("E8'", "0.5.23", V2, 847, "EagleDraftWorker.draft_forward", FORWARD_0523),
]  # fmt: skip


@pytest.mark.parametrize("edge", EDGES, ids=lambda e: f"{e.release}-{e.name}")
def test_edge(edge: Edge) -> None:
    code_map = map_of(edge.release)
    sites = edges_at(code_map, edge.file, edge.line, edge.caller)
    answers = [places(code_map, site.callees) for site in sites]
    assert any(edge.callee in found and found - edge.also == {edge.callee} for found in answers), (
        f"{edge.file}:{edge.line} {edge.caller} -> {edge.callee}, found {answers}"
    )
    assert all(site.status is not EdgeStatus.UNRESOLVED for site in sites)


def test_both_releases_are_measured_on_eight_edges() -> None:
    assert [sum(e.release == r for e in EDGES) for r in ("0.5.9", "0.5.23")] == [8, 8]


@pytest.mark.parametrize("release", ["0.5.9", "0.5.12"])
def test_verify_never_calls_the_entry_of_its_own_class(release: str) -> None:
    """EAGLEWorker is a TpModelWorker, and the worker it drives is another object."""
    code_map = map_of(release)
    entry = f"{V1}::EAGLEWorker.forward_batch_generation"
    callers = [e.caller for e in code_map.edges if entry in e.callees]
    assert callers, "the scheduler must call it"
    assert not [c for c in callers if "eagle_worker.py::EAGLEWorker." in c]


@pytest.mark.parametrize(
    ("release", "abstract"),
    [
        ("0.5.23", f"{SRT}speculative/base_spec_worker.py::EagleDraftWorkerBase.draft"),
        ("0.5.23", f"{SRT}speculative/base_spec_worker.py::EagleDraftWorkerBase.draft_extend"),
        ("0.5.23", f"{SRT}model_executor/runner/base_runner.py::BaseRunner.execute"),
        ("0.5.23", f"{SRT}model_executor/runner/base_runner.py::BaseRunner.can_run_graph"),
        ("0.5.9", f"{SRT}speculative/base_spec_worker.py::BaseDraftWorker.draft"),
        ("0.5.9", f"{SRT}managers/tp_worker.py::BaseTpWorker.forward_batch_generation"),
    ],
)
def test_no_call_ends_at_an_abstract_method(release: str, abstract: str) -> None:
    edges = map_of(release).edges
    assert edges
    assert not [str(e.span) for e in edges if abstract in e.callees]


def test_other_platforms_reach_their_own_runner() -> None:
    """model_runner.py:2149-2156 picks the runner's class by device; ROCm's is ``"cuda"``."""
    for platform, name, file in [
        ("cuda", "CudaGraphRunner", "cuda_graph_runner.py"),
        ("cpu", "CPUGraphRunner", "cpu_graph_runner.py"),
        ("npu", "NPUGraphRunner", "npu_graph_runner.py"),
        ("hip", "CudaGraphRunner", "cuda_graph_runner.py"),
    ]:
        code_map = map_of("0.5.9", platform)
        sites = edges_at(code_map, MODEL_RUNNER, 2463, "ModelRunner._forward_raw")
        found = {symbol for site in sites for symbol in site.callees}
        assert len(found) == 1, f"{platform}: {found}"
        assert f"{name}.replay" in found.pop(), f"{platform}, class of {file}"
