"""Lines, texts and tests of SGLang 0.5.9 that the hand-written map is made of."""

from __future__ import annotations

from specmap.codemap.condition import Atom, AtomKind, Condition, Leaf, all_of, negate
from specmap.codemap.graph import Guard
from specmap.codemap.source import Span, symbol_id

SRT = "sglang/srt"
FILES = {
    "EAGLEWorker": f"{SRT}/speculative/eagle_worker.py",
    "NGRAMWorker": f"{SRT}/speculative/ngram_worker.py",
    "EAGLEDraftCudaGraphRunner": f"{SRT}/speculative/eagle_draft_cuda_graph_runner.py",
    "EAGLEDraftExtendCudaGraphRunner": f"{SRT}/speculative/eagle_draft_extend_cuda_graph_runner.py",
    "TpModelWorker": f"{SRT}/managers/tp_worker.py",
    "BaseTpWorker": f"{SRT}/managers/tp_worker.py",
    "ModelRunner": f"{SRT}/model_executor/model_runner.py",
    "CudaGraphRunner": f"{SRT}/model_executor/cuda_graph_runner.py",
    "PiecewiseCudaGraphRunner": f"{SRT}/model_executor/piecewise_cuda_graph_runner.py",
    "EagleVerifyInput": f"{SRT}/speculative/eagle_info.py",
    "Scheduler": f"{SRT}/managers/scheduler.py",
    "SpeculativeAlgorithm": f"{SRT}/speculative/spec_info.py",
}
LINES = {
    "EAGLEWorker.init_cuda_graphs": 232,
    "EAGLEWorker.forward_batch_generation": 278,
    "EAGLEWorker.forward_target_extend": 357,
    "EAGLEWorker._draft_preprocess_decode": 384,
    "EAGLEWorker.draft": 532,
    "EAGLEWorker.draft_forward": 615,
    "EAGLEWorker.verify": 691,
    "EAGLEWorker.forward_draft_extend": 862,
    "EAGLEWorker.forward_draft_extend_after_decode": 902,
    "NGRAMWorker.forward_batch_generation": 216,
    "TpModelWorker.forward_batch_generation": 431,
    "ModelRunner.forward_decode": 2275,
    "ModelRunner.forward_extend": 2307,
    "ModelRunner.forward": 2387,
    "ModelRunner._forward_raw": 2443,
    "CudaGraphRunner.__init__": 241,
    "CudaGraphRunner.can_run": 385,
    "CudaGraphRunner.replay": 846,
    "PiecewiseCudaGraphRunner.replay": 689,
    "EAGLEDraftCudaGraphRunner.can_run": 139,
    "EAGLEDraftCudaGraphRunner._replay": 175,
    "EAGLEDraftCudaGraphRunner.replay": 319,
    "EAGLEDraftExtendCudaGraphRunner.can_run": 190,
    "EAGLEDraftExtendCudaGraphRunner._replay": 229,
    "EAGLEDraftExtendCudaGraphRunner.replay": 380,
    "EagleVerifyInput.verify": 216,
    "Scheduler.run_batch": 2296,
}
CLASSES = (
    ("EAGLEWorker", 78, ("EAGLEWorker", "TpModelWorker", "BaseTpWorker")),
    ("NGRAMWorker", 25, ("NGRAMWorker",)),
    ("TpModelWorker", 206, ("TpModelWorker", "BaseTpWorker")),
    ("ModelRunner", 278, ("ModelRunner",)),
    ("CudaGraphRunner", 238, ("CudaGraphRunner",)),
    ("PiecewiseCudaGraphRunner", 127, ("PiecewiseCudaGraphRunner",)),
    ("EAGLEDraftCudaGraphRunner", 37, ("EAGLEDraftCudaGraphRunner",)),
    ("EAGLEDraftExtendCudaGraphRunner", 39, ("EAGLEDraftExtendCudaGraphRunner",)),
)
EXTEND = "batch.forward_mode.is_extend() or batch.is_extend_in_batch"
CAPTURES_VERIFY = (
    "model_runner.spec_algorithm.is_eagle() or model_runner.spec_algorithm.is_standalone()"
    " or model_runner.spec_algorithm.is_ngram()"
)
RAW_TO_GRAPH = "mode_check() and self.graph_runner and self.graph_runner.can_run(forward_batch)"


def sym(name: str) -> str:
    return symbol_id(FILES[name.split(".")[0]], name)


def at(name: str, line: int, end: int | None = None) -> Span:
    return Span(FILES[name.split(".")[0]], line, line if end is None else end)


def atom(text: str, kind: AtomKind, span: Span) -> Condition:
    return Leaf(Atom(text, kind, span))


def guard(holder: str, text: str, line: int, branch: bool) -> Guard:
    return Guard(text, at(holder, line), branch, sym(holder))


def chain(*hops: tuple[str, int]) -> tuple[tuple[str, int], ...]:
    return tuple((sym(name), line) for name, line in hops)


IN_EXTEND = guard("EAGLEWorker.forward_batch_generation", EXTEND, 290, True)
IN_DECODE = guard("EAGLEWorker.forward_batch_generation", EXTEND, 290, False)
MODE = atom("mode_check()", AtomKind.BATCH, at("ModelRunner", 2457))
RUNNER = atom("self.graph_runner", AtomKind.LAUNCH, at("ModelRunner", 2458))
PIECEWISE = atom(
    "self.piecewise_cuda_graph_runner is not None", AtomKind.LAUNCH, at("ModelRunner", 2324)
)
PIECEWISE_FITS = atom(
    "num_tokens <= self.max_num_tokens", AtomKind.BATCH, at("PiecewiseCudaGraphRunner", 386)
)
CAN_RUN = tuple(
    atom(text, kind, at("CudaGraphRunner", line, end))
    for text, kind, line, end in (
        ("cuda_graph_bs <= self.max_bs", AtomKind.BATCH, 403, 403),
        ("forward_batch.can_run_dp_cuda_graph", AtomKind.BATCH, 407, 407),
        ("torch.all(forward_batch.encoder_lens > 0)", AtomKind.BATCH, 413, 413),
        ("forward_batch.can_run_tbo", AtomKind.BATCH, 432, 432),
        (
            "requested_capture_hidden_mode == self.capture_hidden_mode",
            AtomKind.STATE,
            429,
            429,
        ),
        (
            "forward_batch.batch_size * self.num_tokens_per_bs == forward_batch.input_ids.numel()",
            AtomKind.BATCH,
            437,
            438,
        ),
    )
)
VERIFY_GRAPH = all_of(MODE, RUNNER, *CAN_RUN)
VERIFY_PIECEWISE = all_of(negate(VERIFY_GRAPH), PIECEWISE, PIECEWISE_FITS)
DRAFT_RUNNER = atom("self.speculative_num_steps > 1", AtomKind.LAUNCH, at("EAGLEWorker", 246))
DRAFT_FITS = atom(
    "cuda_graph_bs <= self.max_bs", AtomKind.BATCH, at("EAGLEDraftCudaGraphRunner", 153)
)
EXTEND_RUNNER = atom("self.draft_extend_attn_backend", AtomKind.STATE, at("EAGLEWorker", 260))
EXTEND_FITS = atom(
    "cuda_graph_bs <= self.max_bs", AtomKind.BATCH, at("EAGLEDraftExtendCudaGraphRunner", 204)
)

ENTRY = "EAGLEWorker.forward_batch_generation"
TARGET = (
    ("TpModelWorker.forward_batch_generation", 456),
    ("ModelRunner.forward", 2401),
)
VERIFY = ((ENTRY, 316), ("EAGLEWorker.verify", 716), *TARGET)
EAGER_EXTEND = (("ModelRunner._forward_raw", 2500), ("ModelRunner.forward_extend", 2338))
PREFILL = ((ENTRY, 291), ("EAGLEWorker.forward_target_extend", 373), *TARGET)
PIECEWISE_HOPS = (
    ("ModelRunner._forward_raw", 2500),
    ("ModelRunner.forward_extend", 2330),
    ("PiecewiseCudaGraphRunner.replay", 707),
)
DRAFT_EAGER = (
    (ENTRY, 314),
    ("EAGLEWorker.draft", 569),
    ("EAGLEWorker.draft_forward", 670),
    ("ModelRunner.forward", 2401),
    ("ModelRunner._forward_raw", 2487),
    ("ModelRunner.forward_decode", 2300),
)
AFTER = ((ENTRY, 329), ("EAGLEWorker.forward_draft_extend_after_decode", 973))
