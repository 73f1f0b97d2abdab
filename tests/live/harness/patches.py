"""What each release needs to run its CUDA path on a CPU; no file of SGLang is edited.

Three kinds: things that a CPU build of torch lacks become no-ops; the two kernels that exist for
CUDA only are replaced (0.5.9, 0.5.12) or SGLang's own Triton form is chosen (0.5.23); and the
CUDA graph runners are reached on the device "cpu", over ``tape``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

import standins
import torch

STUBS = {
    "0.5.9": ("torchvision", "sgl_kernel"),
    "0.5.12": ("torchvision", "sgl_kernel"),
    "0.5.23": ("torchvision", "sgl_kernel", "vllm._custom_ops"),
}


def install(release: str, *, tape: bool) -> None:
    """Patch an imported SGLang; call it before a Scheduler is built."""
    torch.cuda.synchronize = lambda *_: None
    torch.cuda.empty_cache = lambda: None
    torch.Tensor.record_stream = lambda self, stream: None  # type: ignore[method-assign]
    for name in ("tensor", "empty"):
        setattr(torch, name, _unpinned(getattr(torch, name)))
    kernels, graphs = {
        "0.5.9": (_kernels_0_5_9, _graphs_0_5_9),
        "0.5.12": (_kernels_0_5_9, _graphs_0_5_9),
        "0.5.23": (_kernels_0_5_23, _graphs_0_5_23),
    }[release]
    kernels()
    if tape:
        import tape as tapes

        tapes.install()
        graphs()


def _unpinned(make: Any) -> Any:
    """Make a tensor in memory that is not pinned: there is no device to pin it for."""

    @wraps(make)
    def made(*args: Any, pin_memory: bool = False, **kwargs: Any) -> Any:
        return make(*args, **kwargs)

    return made


@contextmanager
def changed(target: Any, name: str, value: Any) -> Iterator[None]:
    """Change an attribute for a while."""
    before = getattr(target, name)
    setattr(target, name, value)
    try:
        yield
    finally:
        setattr(target, name, before)


def _kernels_0_5_9() -> None:
    from sglang.srt.speculative import eagle_info, eagle_info_v2, eagle_utils

    def verify(
        predicts: Any, accept_index: Any, accept_token_num: Any, candidates: Any,
        target_predict: Any, topk: int = -1, **links: Any,
    ) -> Any:  # fmt: skip
        links = {name.replace("retrive", "retrieve"): value for name, value in links.items()}
        standins.verify_greedy(
            predicts, accept_index, accept_token_num, candidates, links["retrieve_index"],
            links["retrieve_next_token"], links["retrieve_next_sibling"], target_predict,
        )  # fmt: skip
        return predicts, accept_index, accept_token_num

    eagle_utils.sgl_build_tree_kernel_efficient = standins.build_tree
    for module in (eagle_utils, eagle_info, eagle_info_v2):
        if hasattr(module, "verify_tree_greedy_func"):
            module.verify_tree_greedy_func = verify
    eagle_info_v2._is_cuda = True  # else the cache locations are None without a word


def _kernels_0_5_23() -> None:
    from sglang.kernels.ops.speculative import cache_locs, spec_tree

    spec_tree._is_xpu = cache_locs._is_xpu = True  # SGLang's Triton form of both operations


def _as_if_cuda(cls: type, name: str) -> None:
    """Let a worker look up its graph runners under "cuda"."""
    method = getattr(cls, name)

    @wraps(method)
    def capture(self: Any) -> Any:
        with changed(self.target_worker, "device", "cuda"):
            return method(self)

    setattr(cls, name, capture)


def _graphs_0_5_9() -> None:
    from sglang.srt.model_executor import model_runner
    from sglang.srt.model_executor.cuda_graph_runner import CudaGraphRunner
    from sglang.srt.model_executor.forward_batch_info import ForwardMode
    from sglang.srt.speculative import eagle_worker, eagle_worker_v2

    ForwardMode.is_cpu_graph = ForwardMode.is_cuda_graph
    eagle_worker_v2._is_cuda = True
    _as_if_cuda(eagle_worker.EAGLEWorker, "init_cuda_graphs")
    _as_if_cuda(eagle_worker_v2.EagleDraftWorker, "init_cuda_graphs")

    method = model_runner.ModelRunner.init_device_graphs

    def runner_for_cpu(runner: Any) -> Any:
        with changed(runner.server_args, "enable_torch_compile", False):
            return CudaGraphRunner(runner)

    @wraps(method)
    def init_device_graphs(self: Any) -> None:
        if self.server_args.disable_cuda_graph:
            self.graph_runner, self.graph_mem_usage = None, 0
            return
        with changed(self.server_args, "enable_torch_compile", True):  # the gate for "cpu"
            method(self)

    model_runner.CPUGraphRunner = runner_for_cpu
    model_runner.ModelRunner.init_device_graphs = init_device_graphs


def _graphs_0_5_23() -> None:
    from sglang.srt.model_executor.forward_batch_info import ForwardMode
    from sglang.srt.model_executor.model_runner_components import cuda_graph_setup
    from sglang.srt.model_executor.runner.decode_cuda_graph_runner import DecodeCudaGraphRunner
    from sglang.srt.speculative import eagle_worker_v2

    ForwardMode.is_cpu_graph = ForwardMode.is_cuda_graph
    eagle_worker_v2._is_xpu = True
    _as_if_cuda(eagle_worker_v2.EagleDraftWorker, "_capture_cuda_graphs")
    cuda_graph_setup.CPUGraphRunner = DecodeCudaGraphRunner
    cuda_graph_setup.current_platform = _Overlay(
        cuda_graph_setup.current_platform, "capabilities", "graph_capture"
    )

    get_flags = cuda_graph_setup.get_flags
    cuda_graph_setup.get_flags = lambda: _Overlay(get_flags(), "capture", "enable_torch_compile")


class _Overlay:
    """An object whose ``part`` says True to ``flag``; all else is the object's."""

    def __init__(self, real: Any, part: str, flag: str) -> None:
        self.real, self.part, self.flag = real, part, flag

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.real, name)
        return _Flagged(value, self.flag) if name == self.part else value


class _Flagged:
    def __init__(self, real: Any, flag: str) -> None:
        self.real, self.flag = real, flag

    def __getattr__(self, name: str) -> Any:
        return True if name == self.flag else getattr(self.real, name)
