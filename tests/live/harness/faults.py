"""Lies that the tests must see through: each breaks one thing that they rely on."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

import torch


def install(name: str) -> None:
    """Break one thing, after the patches are in."""
    kind, _, detail = name.partition(":")
    if kind == "agent-raises":
        _agent_raises(*detail.split("."))
    elif kind == "killed-after":
        _killed_after(int(detail))
    else:
        {
            "tape-runs-nothing": _tape_runs_nothing,
            "tape-not-counted": _tape_not_counted,
            "kernel-shows-siblings": _kernel_shows_siblings,
        }[kind]()


def _agent_raises(module: str, owner: str, method: str) -> None:
    """Let a method of the tracer's agent raise whenever it is called."""

    def broken(self: Any, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("broken by a test")

    setattr(getattr(sys.modules[f"specmap_agent.{module}"], owner), method, broken)


def _killed_after(batches: int) -> None:
    """Kill this process, as the kernel does when memory is short, after so many batches."""
    from sglang.srt.managers.scheduler import Scheduler

    process, left = Scheduler.process_batch_result, [batches]

    def process_batch_result(self: Any, *args: Any, **kwargs: Any) -> Any:
        process(self, *args, **kwargs)
        left[0] -= 1
        if not left[0]:
            os.kill(os.getpid(), signal.SIGKILL)

    Scheduler.process_batch_result = process_batch_result


def _tape_runs_nothing() -> None:
    import tape

    def replay(self: Any) -> None:
        tape.replayed.append(self)

    torch._C._CUDAGraph.replay = replay  # type: ignore[attr-defined]


def _tape_not_counted() -> None:
    import tape

    replay = torch._C._CUDAGraph.replay  # type: ignore[attr-defined]

    def uncounted(self: Any) -> None:
        replay(self)
        tape.replayed.pop()

    torch._C._CUDAGraph.replay = uncounted  # type: ignore[attr-defined]


def _kernel_shows_siblings() -> None:
    """Leave every draft token visible to every other one in the tree mask."""
    from sglang.srt.speculative import eagle_utils

    build = eagle_utils.sgl_build_tree_kernel_efficient

    def all_visible(parents: Any, selected: Any, lengths: Any, mask: Any, *rest: Any) -> None:
        build(parents, selected, lengths, mask, *rest)
        mask.fill_(True)

    eagle_utils.sgl_build_tree_kernel_efficient = all_visible
