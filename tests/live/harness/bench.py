"""The same job with the tracer, and SGLang's torch profiler, switched on and off in turn.

``bench.py JOB RESULT`` writes the time of every decode batch in windows of ``WINDOW`` cycles.
"""

from __future__ import annotations

import itertools
import os
import sys
import tempfile
from multiprocessing.connection import Connection
from time import perf_counter_ns
from typing import Any

import driver

STATES = ("off", "tracer") * 3 + ("off", "profiler")  # writing a profile takes long
WINDOW = int(os.environ["BENCH_WINDOW"])


def rank(job_path: str, result_path: str, pipe: Connection) -> None:
    """Be the rank, measured."""
    driver.rank(job_path, result_path, pipe, attach)


def attach(scheduler: Any, job: dict[str, Any]) -> Any:
    """Measure a Scheduler while it serves a job."""
    from truth import Truth

    windows = Windows(scheduler, Truth(scheduler))
    driver.ask(scheduler, job, windows.truth)
    return windows


class Windows:
    """Switches between decode batches, and keeps the time of each batch by its state."""

    def __init__(self, scheduler: Any, truth: Any) -> None:
        self.scheduler, self.truth = scheduler, truth
        self.states = itertools.cycle(STATES)
        self.times: list[tuple[str, list[int]]] = []
        self.run_batch = scheduler.run_batch
        scheduler.run_batch = self.timed
        self.folder = tempfile.mkdtemp()

    def timed(self, batch: Any, *args: Any, **kwargs: Any) -> Any:
        """Run a batch and note its time if it decodes."""
        if batch.forward_mode.name != "DECODE":
            return self.run_batch(batch, *args, **kwargs)
        if not self.times or len(self.times[-1][1]) == WINDOW:
            self.switch()
        start = perf_counter_ns()
        result = self.run_batch(batch, *args, **kwargs)
        self.times[-1][1].append(perf_counter_ns() - start)
        return result

    def switch(self) -> None:
        """Begin the next window."""
        before = self.times[-1][0] if self.times else "off"
        state = next(self.states)
        if before == "profiler":
            self.scheduler.stop_profile()
        ring = sys.modules["specmap_agent.door"]._started[1].recording.ring
        ring.arm(state == "tracer", state == "tracer")
        if state == "profiler":
            self.scheduler.init_profile(self.folder, None, None, ["CPU"], None, None, False, "")
            self.scheduler.start_profile()
        self.times.append((state, []))

    def result(self) -> dict[str, Any]:
        """Return the whole windows, and which ring the tracer had."""
        ring = sys.modules["specmap_agent.door"]._started[1].recording.ring
        whole = [one for one in self.times if len(one[1]) == WINDOW]
        return {"ring": ring.kind, "windows": whole}


if __name__ == "__main__":
    sys.exit(driver.main(*sys.argv[1:], target=rank))
