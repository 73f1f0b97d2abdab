"""Tape replay: what stands in for a CUDA graph on a machine without a GPU.

PyTorch's own ``torch.cuda.CUDAGraph`` stays; only the C++ class below it is filled in. Capture
writes down every operation and every Triton launch with the very tensors it used; replay runs
that tape into the captured outputs. As with a graph: buffers and numbers are fixed, no Python of
the model runs again, and a host read while capturing raises. Unlike a graph: no streams, no
memory pool, no capture failures of real kernels, and its times mean nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils._pytree import tree_leaves
from triton.runtime.interpreter import GridExecutor

HOST_READ = "aten::_local_scalar_dense"
ALLOCATIONS = ("aten::empty", "aten::new_empty")
POOL = (0, 0)

replayed: list[Any] = []  # the graph object of every replay so far, in order
_capturing: Any = None
_launch = GridExecutor.__call__


class _Recorder(TorchDispatchMode):
    """Runs each operation and appends what runs it again."""

    def __init__(self, steps: list[Callable[[], Any]]) -> None:
        super().__init__()
        self.steps = steps

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        schema = func._schema
        if schema.name == HOST_READ:
            raise RuntimeError(f"not permitted while capturing: {schema.name}")
        result = func(*args, **kwargs)
        aliases = [r.alias_info for r in schema.returns]
        if any(a.alias_info and a.alias_info.is_write for a in schema.arguments):
            self.steps.append(partial(func, *args, **kwargs))
        elif not schema.name.startswith(ALLOCATIONS) and not (aliases and all(aliases)):
            self.steps.append(partial(_again, func, args, kwargs, _tensors(result)))
        return result


def _tensors(values: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(values) if isinstance(leaf, torch.Tensor)]


def _again(func: Any, args: Any, kwargs: Any, captured: list[torch.Tensor]) -> None:
    """Run an operation and put its results where the captured ones lie."""
    for old, new in zip(captured, _tensors(func(*args, **kwargs)), strict=True):
        if old.numel():
            old.copy_(new)


def _triton_launch(self: Any, *args: Any, **kwargs: Any) -> Any:
    if _capturing is None:
        return _launch(self, *args, **kwargs)
    with _disable_current_modes():
        result = _launch(self, *args, **kwargs)
    _capturing.steps.append(partial(_launch, self, *args, **kwargs))
    return result


def _new(cls: Any, *args: Any) -> Any:
    return object.__new__(cls)


def _init(self: Any, *args: Any, **kwargs: Any) -> None:
    self.steps = []


def _capture_begin(self: Any, pool: Any = None, capture_error_mode: str = "") -> None:
    global _capturing
    if _capturing is not None:
        raise RuntimeError("a capture within a capture")
    self.steps = []
    self.recorder = _Recorder(self.steps)
    self.recorder.__enter__()
    _capturing = self


def _capture_end(self: Any) -> None:
    global _capturing
    self.recorder.__exit__(None, None, None)
    _capturing = None


def _replay(self: Any) -> None:
    replayed.append(self)
    with torch.no_grad():
        for step in self.steps:
            step()


class _Graph:
    """``torch.cuda.graph`` without its streams."""

    def __init__(self, cuda_graph: Any, pool: Any = None, stream: Any = None, **_: Any) -> None:
        self.cuda_graph = cuda_graph

    def __enter__(self) -> None:
        self.cuda_graph.capture_begin()

    def __exit__(self, *_: Any) -> None:
        self.cuda_graph.capture_end()


def install() -> None:
    """Fill in the C++ class, and the functions around it, for the devices cuda and cpu."""
    base = torch._C._CUDAGraph  # type: ignore[attr-defined]
    base.__new__, base.__init__ = _new, _init
    base.capture_begin, base.capture_end = _capture_begin, _capture_end
    base.replay, base.reset = _replay, _init
    base.pool = lambda self: POOL
    GridExecutor.__call__ = _triton_launch
    for device in (torch.cuda, torch.cpu):
        device.CUDAGraph = torch.cuda.CUDAGraph
        device.graph = _Graph
        device.graph_pool_handle = lambda: POOL
        device.is_current_stream_capturing = lambda: _capturing is not None
