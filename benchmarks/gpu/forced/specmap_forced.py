"""A plugin for one run: the target of one tensor-parallel rank does not replay its graph.

Put this folder on PYTHONPATH: SGLang (0.5.11 on) loads it in every scheduler process. With
``SPECMAP_FORCED_FLAG`` it waits until that file is there.
"""

from __future__ import annotations

import importlib
import os
import threading
import time
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
    """Wait for the file."""
    while not Path(flag).exists():
        time.sleep(0.1)
    force()


def force() -> None:
    """Replace the test of the first runner that this release has."""
    for module, name, method in PLACES:
        try:
            found = importlib.import_module(f"sglang.srt.model_executor.{module}")
            runner = getattr(found, name)
            can_run = getattr(runner, method)
        except (ImportError, AttributeError):
            continue

        def forced(self: Any, *args: Any, **kwargs: Any) -> bool:
            said = can_run(self, *args, **kwargs)  # noqa: B023
            return bool(said) and self.model_runner.tp_rank != RANK

        setattr(runner, method, forced)
        return
