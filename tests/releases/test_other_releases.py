"""Facts of releases that the answer key does not cover, read from their source.

Each test quotes the line of source that it states.
"""

from __future__ import annotations

import pytest

from specmap.codemap.condition import Condition, atoms_of, evaluate
from specmap.codemap.graph import Flag
from specmap.codemap.source import qualname_of
from tests.releases.lookup import (
    SRT,
    Place,
    class_named,
    edges_at,
    has_guard,
    method_holder,
    normal,
    phase_named,
    places,
    stores,
    worker_named,
)
from tests.releases.trees import map_of

pytestmark = pytest.mark.releases

SPEC = SRT + "speculative/"

V2_FAMILY = {
    "EAGLEWorkerV2",
    "MultiLayerEagleWorkerV2",
    "StandaloneWorkerV2",
    "FrozenKVMTPWorkerV2",
    "DFlashWorkerV2",
    "NGRAMWorker",
}

# What the scheduler can build: 0.4.6 and 0.4.10 scheduler.py name one class, 0.5.3
# scheduler.py:410, 422 and 434 three, later releases the classes that spec_info.py returns.
DRIVABLE = {
    "0.4.6": {"EAGLEWorker"},
    "0.4.10": {"EAGLEWorker"},
    "0.5.3": {"EAGLEWorker", "StandaloneWorker", "NGRAMWorker"},
    "0.5.14": V2_FAMILY,
    "0.5.17": V2_FAMILY | {"DSparkWorkerV2"},
    "0.5.20": V2_FAMILY | {"DSparkWorkerV2", "UnoWorkerV2"},
}


@pytest.mark.parametrize("release", DRIVABLE)
def test_workers_that_the_scheduler_can_drive(release: str) -> None:
    workers = [w for w in map_of(release).workers if w.reachable and w.entry]
    assert {w.name for w in workers} == DRIVABLE[release]


ENTRIES = [
    # def forward_batch_speculative_generation(
    ("0.4.10", "EAGLEWorker", "EAGLEWorker.forward_batch_speculative_generation", 300),
    # def forward_batch_generation(self, batch: ScheduleBatch) -> ForwardBatchOutput:
    ("0.5.3", "EAGLEWorker", "EAGLEWorker.forward_batch_generation", 432),
    ("0.5.3", "StandaloneWorker", "EAGLEWorker.forward_batch_generation", 432),
    ("0.5.3", "NGRAMWorker", "NGRAMWorker.forward_batch_generation", 210),
    # def forward_batch_generation(self, batch: ScheduleBatch, on_publish=None):
    ("0.5.14", "EAGLEWorkerV2", "EAGLEWorkerV2.forward_batch_generation", 1070),
    ("0.5.14", "FrozenKVMTPWorkerV2", "FrozenKVMTPWorkerV2.forward_batch_generation", 719),
    # def forward_batch_generation(
    ("0.5.17", "StandaloneWorkerV2", "EAGLEWorkerV2.forward_batch_generation", 1103),
    ("0.5.17", "DSparkWorkerV2", "DSparkWorkerV2.forward_batch_generation", 384),
    ("0.5.20", "UnoWorkerV2", "UnoWorkerV2.forward_batch_generation", 773),
    ("0.5.20", "DFlashWorkerV2", "DFlashWorkerV2.forward_batch_generation", 2184),
]


@pytest.mark.parametrize(("release", "worker", "method", "line"), ENTRIES)
def test_entry(release: str, worker: str, method: str, line: int) -> None:
    entry = worker_named(map_of(release), worker).entry
    assert entry is not None
    assert entry.span.line == line
    assert method.endswith(f".{entry.name}")
    assert qualname_of(entry.holder).partition(".")[0] == method.partition(".")[0]


VERIFY_METHODS = [
    # def verify(self, batch: ScheduleBatch, spec_info: EagleVerifyInput):
    ("0.4.10", "EAGLEWorker", Place("EAGLEWorker.verify", SPEC + "eagle_worker.py", 643)),
    ("0.5.3", "StandaloneWorker", Place("EAGLEWorker.verify", SPEC + "eagle_worker.py", 802)),
    ("0.5.3", "NGRAMWorker", None),
    # def verify(self, batch: ScheduleBatch):
    ("0.5.14", "EAGLEWorkerV2", Place("EAGLEWorkerV2.verify", SPEC + "eagle_worker_v2.py", 1431)),
    ("0.5.14", "DFlashWorkerV2", None),
    # def verify(self, batch: ScheduleBatch, grammar_barrier=None):
    (
        "0.5.17",
        "FrozenKVMTPWorkerV2",
        Place("EAGLEWorkerV2.verify", SPEC + "eagle_worker_v2.py", 1495),
    ),
    ("0.5.20", "EAGLEWorkerV2", Place("EAGLEWorkerV2.verify", SPEC + "eagle_worker_v2.py", 1666)),
    ("0.5.20", "UnoWorkerV2", None),
]


@pytest.mark.parametrize(("release", "worker", "verify"), VERIFY_METHODS)
def test_verify_method(release: str, worker: str, verify: Place | None) -> None:
    """A worker without the method has the phase all the same."""
    code_map = map_of(release)
    assert method_holder(code_map, class_named(code_map, worker), "verify") == verify
    assert phase_named(worker_named(code_map, worker), "verify").arms


def flag_at(release: str, file: str, line: int) -> Flag:
    found = [f for f in map_of(release).flags if (f.span.file, f.span.line) == (SPEC + file, line)]
    assert len(found) == 1, f"{file}:{line}: {found}"
    return found[0]


def test_0_4_10_constant_stands_in_a_tuple() -> None:
    # 322: return logits_output, next_token_ids, bid, 0, False
    flag = flag_at("0.4.10", "eagle_worker.py", 322)
    assert (str(flag.status), flag.value, flag.tuple_position) == ("constant", False, 4)
    assert (str(flag.phase), flag.decides) == ("target_prefill", False)
    # 314: if batch.forward_mode.is_extend() or batch.is_extend_in_batch:
    test = "batch.forward_mode.is_extend() or batch.is_extend_in_batch"
    assert has_guard(flag.guards, test, 314, branch=True)


def test_0_4_10_flag_of_verify_is_handed_on_inside_a_tuple() -> None:
    # 340-345: return (logits_output, ..., can_run_cuda_graph,)
    found = [
        f
        for f in map_of("0.4.10").flags
        if f.span.file == SPEC + "eagle_worker.py" and 340 <= f.span.line <= 345
    ]
    assert [(str(f.status), str(f.phase), f.tuple_position) for f in found] == [
        ("propagated", "verify", 4)
    ]


# keyword constants: (release, file, line, phase, guard line)
CONSTANTS = [
    # can_run_cuda_graph=False,  under 444: if batch.forward_mode.is_extend() or ...
    ("0.5.3", "eagle_worker.py", 456, "target_prefill", 444),
    # can_run_cuda_graph=False,  under 1295: if model_worker_batch.forward_mode.is_idle():
    ("0.5.14", "dflash_worker_v2.py", 1312, "idle", 1295),
    # can_run_cuda_graph=False,  called under 519: if batch.forward_mode.is_idle():
    ("0.5.17", "dspark_components/dspark_worker_v2.py", 503, "idle", 519),
    # can_run_cuda_graph=False,  under 2275: if batch.forward_mode.is_idle():
    ("0.5.20", "dflash_worker_v2.py", 2315, "idle", 2275),
]


@pytest.mark.parametrize(("release", "file", "line", "phase", "guard_line"), CONSTANTS)
def test_constant(release: str, file: str, line: int, phase: str, guard_line: int) -> None:
    flag = flag_at(release, file, line)
    assert (str(flag.status), flag.value, str(flag.phase)) == ("constant", False, phase)
    assert guard_line in {g.span.line for g in flag.guards if g.branch}


def test_0_5_14_verify_returns_the_first_of_two_decisions() -> None:
    # 1500: logits_output = forward_batch_output.logits_output; 1576: can_run_cuda_graph=
    flag = flag_at("0.5.14", "eagle_worker_v2.py", 1500)
    assert (str(flag.status), str(flag.phase)) == ("dropped", "verify")
    # 1442: verify_forward_batch, can_run_cuda_graph = eagle_prepare_for_verify(
    assert (flag.result_line, flag.result_source_line) == (1576, 1442)
    doubles = [(d.worker, str(d.phase)) for d in map_of("0.5.14").doubles]
    assert any("EAGLEWorkerV2" in worker and phase == "verify" for worker, phase in doubles)


def test_0_5_14_dflash_returns_the_second_of_two_decisions() -> None:
    # 1534: verify_forward_batch, _ = verify_input.prepare_for_verify(
    assert str(flag_at("0.5.14", "dflash_worker_v2.py", 1534).status) == "dropped"
    # 1547: can_run_cuda_graph = target_out.can_run_cuda_graph
    flag = flag_at("0.5.14", "dflash_worker_v2.py", 1547)
    assert (str(flag.status), str(flag.phase)) == ("propagated", "verify")


STORES = [
    # self.cuda_graph_runner_for_draft_extend = EAGLEDraftExtendCudaGraphRunner(
    # under: if self.draft_extend_attn_backend:
    ("0.4.10", "EAGLEWorker.cuda_graph_runner_for_draft_extend", 288, 282),
    ("0.5.3", "EAGLEWorker.cuda_graph_runner_for_draft_extend", 420, 414),
    # self.cuda_graph_runner_for_draft_extend = Device2ExtendCudaGraphRunner[
    # under: if self.draft_extend_attn_backend and (_is_npu or supports_cuda_... or ...):
    ("0.5.14", "EagleDraftWorker.cuda_graph_runner_for_draft_extend", 455, 442),
    # under: if (self.draft_extend_attn_backend and not envs.SGLANG_DISABLE_... and (...)):
    ("0.5.20", "EagleDraftWorker.cuda_graph_runner_for_draft_extend", 572, 554),
]


@pytest.mark.parametrize(("release", "attribute", "line", "guard_line"), STORES)
def test_draft_extend_graph_is_built_under_a_guard(
    release: str, attribute: str, line: int, guard_line: int
) -> None:
    every = stores(map_of(release), attribute)
    here = [s for s in every if s.span.line == line]
    assert len(here) == 1, [str(s.span) for s in every]
    assert [None if t is None else qualname_of(t) for t in here[0].types] == [
        "EAGLEDraftExtendCudaGraphRunner"
    ]
    assert guard_line in {g.span.line for g in here[0].guards if g.branch}
    assert any(s.types == (None,) for s in every), "the attribute starts as None"


EDGES = [
    # 667: self.target_worker.forward_batch_generation(
    ("0.4.10", "eagle_worker.py", 667, "EAGLEWorker.verify",
     Place("TpModelWorker.forward_batch_generation", SRT + "managers/tp_worker.py", 219)),
    # 216: forward_batch_output = self.target_worker.forward_batch_generation(
    ("0.5.3", "ngram_worker.py", 216, "NGRAMWorker.forward_batch_generation",
     Place("TpModelWorker.forward_batch_generation", SRT + "managers/tp_worker.py", 236)),
    # 1442: verify_forward_batch, can_run_cuda_graph = eagle_prepare_for_verify(
    ("0.5.14", "eagle_worker_v2.py", 1442, "EAGLEWorkerV2.verify",
     Place("eagle_prepare_for_verify", SPEC + "eagle_utils.py", 281)),
    # 1496: return run_eagle_verify(
    ("0.5.17", "eagle_worker_v2.py", 1496, "EAGLEWorkerV2.verify",
     Place("run_eagle_verify", SPEC + "eagle_worker_common.py", 461)),
    # 1020: return run_eagle_verify(
    ("0.5.17", "multi_layer_eagle_worker_v2.py", 1020, "MultiLayerEagleWorkerV2.verify",
     Place("run_eagle_verify", SPEC + "eagle_worker_common.py", 461)),
    # 567: forward_batch_output = target_worker.forward_batch_generation(
    ("0.5.20", "eagle_worker_common.py", 567, "run_eagle_verify",
     Place("TpModelWorker.forward_batch_generation", SRT + "managers/tp_worker.py", 593)),
]  # fmt: skip


# scheduler.py builds this target worker while overlap is on; what turns it off for
# speculation is argument handling (0.4.10 server_args.py:497, 0.5.3:1061 and 1134), which a
# scan without launch arguments does not follow.
OVERLAPPED = {
    ("0.4.10", 231): "TpModelWorkerClient.forward_batch_generation",
    ("0.5.3", 231): "TpModelWorkerClient.forward_batch_generation",
}


@pytest.mark.parametrize(("release", "file", "line", "caller", "callee"), EDGES)
def test_call(release: str, file: str, line: int, caller: str, callee: Place) -> None:
    code_map = map_of(release)
    sites = edges_at(code_map, SPEC + file, line, caller)
    answers = [
        {p for p in places(code_map, s.callees) if OVERLAPPED.get((release, p.line)) != p.qualname}
        for s in sites
    ]
    assert {callee} in answers


def test_0_5_3_ngram_verifies_under_its_mode() -> None:
    # 215: if model_worker_batch.forward_mode.is_target_verify():
    file, caller = SPEC + "ngram_worker.py", "NGRAMWorker.forward_batch_generation"
    (verify,) = edges_at(map_of("0.5.3"), file, 216, caller)
    (prefill,) = edges_at(map_of("0.5.3"), file, 231, caller)
    test = "model_worker_batch.forward_mode.is_target_verify()"
    assert has_guard(verify.guards, test, 215, branch=True)
    assert has_guard(prefill.guards, test, 215, branch=False)
    assert [str(p) for p in verify.phases] == ["verify"]
    assert [str(p) for p in prefill.phases] == ["target_prefill"]


def test_0_4_10_can_run_has_four_terms() -> None:
    # cuda_graph_runner.py:411-416; the ngram term came later
    file = SRT + "model_executor/cuda_graph_runner.py"
    held = [d for d in map_of("0.4.10").decisions if d.span.file == file]
    last = [normal(t.text) for d in held for t in d.terms if 412 <= t.span.line <= 415]
    assert last == [
        "is_bs_supported",
        "is_encoder_lens_supported",
        "is_tbo_supported",
        "capture_hidden_mode_matches",
    ]


def test_0_4_10_verify_replays_the_graph_of_line_752() -> None:
    # 752: self.graphs[self.bs].replay()
    verify = phase_named(worker_named(map_of("0.4.10"), "EAGLEWorker"), "verify")
    ends = {(qualname_of(a.chain[-1][0]), a.chain[-1][1]) for a in verify.arms if a.kind == "graph"}
    assert ends == {("CudaGraphRunner.replay", 752)}


TERMS_0_5_20 = {
    # 637: if forward_batch.replace_embeds is not None: return False
    637: "forward_batch.replace_embeds is not None",
    # 657: and spec_info.num_tokens_per_req != self.captured_req_width
    657: "spec_info.num_tokens_per_req != self.captured_req_width",
}


@pytest.mark.parametrize("line", TERMS_0_5_20)
def test_0_5_20_terms_that_refuse_a_graph(line: int) -> None:
    file = SRT + "model_executor/runner/decode_cuda_graph_runner.py"
    held = [d for d in map_of("0.5.20").decisions if d.span.file == file]
    found = [t for d in held for t in d.terms if t.span.line == line]
    assert {normal(t.text) for t in found} == {TERMS_0_5_20[line]}
    assert {t.graph_when for t in found} == {False}


def test_0_5_20_uno_drafts_and_verifies_with_one_call() -> None:
    # 325: result = self.target_worker.forward_batch_generation(  with is_verify=True
    file, caller = SPEC + "uno_worker_v2.py", "UnoWorkerV2._run_target_block"
    (site,) = edges_at(map_of("0.5.20"), file, 325, caller)
    assert {str(p) for p in site.phases} == {"draft", "verify"}


@pytest.mark.parametrize("release", ["0.5.6"])
def test_workers_of_a_registry(release: str) -> None:
    """0.5.6 spec_info.py registers a factory for each algorithm, for example
    ``register_speculative_algorithm("NGRAM", worker_cls=_create_ngram_worker, ...)``; the
    scheduler only calls ``self.spec_algorithm.create_draft_worker(**draft_worker_kwargs)``
    (scheduler.py:347)."""
    found = {w.name: w.selected_when for w in map_of(release).workers if w.reachable}
    algorithms = ("EAGLE", "EAGLE3", "STANDALONE", "NGRAM")
    chosen = {
        name: [a for a in algorithms if _holds(when, a)] for name, when in sorted(found.items())
    }
    assert chosen == {
        "EAGLEWorker": ["EAGLE", "EAGLE3"],
        "EAGLEWorkerV2": ["EAGLE", "EAGLE3"],
        "NGRAMWorker": ["NGRAM"],
        "StandaloneWorker": ["STANDALONE"],
    }
    # 266: if enable_overlap: return EAGLEWorkerV2(**kwargs)
    overlap = "server_args.disable_overlap_schedule"
    asks = {name for name, when in found.items() if overlap in {a.text for a in atoms_of(when)}}
    assert asks == {"EAGLEWorker", "EAGLEWorkerV2"}


def _holds(condition: Condition, algorithm: str) -> bool:
    """Whether a worker can be the one of an algorithm."""
    known = {
        atom.text: atom.text.endswith(f"== {algorithm!r}")
        for atom in atoms_of(condition)
        if " == " in atom.text
    }
    return evaluate(condition, known) is not False
