"""A plugin for one run: the target of one tensor-parallel rank does not replay its graph.

Put this folder on PYTHONPATH: SGLang (0.5.11 on) loads it in every scheduler process. With
``SPECMAP_FORCED_FLAG`` it waits until that file is there, and then for the next batch: the worker
asks twice a pass, once to prepare it and once to run it, and both answers must be the same.

Captured collectives go through SGLang's own NCCL communicator, launched ones through torch's
(the table in ``GroupCoordinator.graph_capture``). A rank that launches while another replays
therefore waits in the other communicator for ever. To see the pair run on, the forced pass
uses the communicator of the graphs; run it with ``disable_custom_all_reduce`` (whose launched
form reads other buffers than the captured one) and ``NCCL_GRAPH_REGISTER=0``.
"""

from __future__ import annotations

import importlib
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

RANK = 1
# Where the runner of the target's decode graph is, by release, the newest first.
PLACES = (
    ("runner.decode_cuda_graph_runner", "DecodeCudaGraphRunner", "can_run_graph"),
    ("runner.decode_cuda_graph_runner", "DecodeCudaGraphRunner", "can_run"),
    ("cuda_graph_runner", "CudaGraphRunner", "can_run"),
)


def install() -> None:
    """Make the runner's own test say no on that rank, at once or when the file is there."""
    flag = os.environ.get("SPECMAP_FORCED_FLAG")
    if flag:
        threading.Thread(target=wait_and_force, args=(flag,), daemon=True).start()
    else:
        force()


def wait_and_force(flag: str) -> None:
    """Wait for the file, and have the scheduler's own thread begin between two batches."""
    while not Path(flag).exists():
        time.sleep(0.1)
    scheduler = importlib.import_module("sglang.srt.managers.scheduler").Scheduler
    run_batch = scheduler.run_batch

    def first(self: Any, *args: Any, **kwargs: Any) -> Any:
        scheduler.run_batch = run_batch
        force()
        return run_batch(self, *args, **kwargs)

    scheduler.run_batch = first


def force() -> None:
    """Replace the test of the first runner that this release has."""
    switch_on = communicator_of_graphs()
    for module, name, method in PLACES:
        try:
            found = importlib.import_module(f"sglang.srt.model_executor.{module}")
            runner = getattr(found, name)
            can_run = getattr(runner, method)
        except (ImportError, AttributeError):
            continue

        def forced(self: Any, *args: Any, **kwargs: Any) -> bool:
            said = bool(can_run(self, *args, **kwargs))  # noqa: B023
            if not said or self.model_runner.tp_rank != RANK:
                return said
            switch_on()
            return False

        setattr(runner, method, forced)
        return


def communicator_of_graphs() -> Callable[[], None]:
    """Return what switches that communicator on until the forward pass ends.

    It is asked for in front of the pass already, where the pass is prepared.
    """
    from sglang.srt.distributed.parallel_state import get_tp_group
    from sglang.srt.model_executor.model_runner import ModelRunner

    forward, usual = ModelRunner.forward, get_tp_group().pynccl_comm.disabled

    def switch() -> None:
        get_tp_group().pynccl_comm.disabled = False

    def restoring(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return forward(self, *args, **kwargs)
        finally:
            get_tp_group().pynccl_comm.disabled = usual

    ModelRunner.forward = restoring
    return switch
