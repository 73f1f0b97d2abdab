"""A plugin for one run: the target of tensor-parallel rank 1 never replays its graph.

Put this folder on PYTHONPATH: SGLang (0.5.11 on) loads it in every scheduler process.
"""

from __future__ import annotations

from typing import Any


def install() -> None:
    """Make the runner's own test say no on rank 1."""
    from sglang.srt.model_executor.cuda_graph_runner import CudaGraphRunner

    can_run = CudaGraphRunner.can_run

    def forced(self: Any, forward_batch: Any) -> bool:
        return bool(can_run(self, forward_batch)) and self.model_runner.tp_rank != 1

    CudaGraphRunner.can_run = forced
