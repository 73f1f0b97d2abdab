"""What the tracer costs a decode cycle, beside SGLang's own torch profiler, on the CPU tier.

One process of the real 0.5.9 worker decodes; every few cycles the tracer or the profiler, started
as SGLang starts it (Python stacks on), is switched on or off. A window is compared with the
switched-off ones beside it; the null compares switched-off windows with each other, so a cost
below it means nothing. Replays do nothing here, so that a cycle is what SGLang's own Python takes
on the host: the tokens are wrong, the calls are the right ones. ``benchmarks/gpu`` has the
figures that count.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median

from tests.live.environment import python_of
from tests.live.jobs import ENVIRONMENT, Job
from tests.live.serving import HARNESS, Runs

RELEASE = "0.5.9"
TOKENS = 200


@dataclass(frozen=True, slots=True)
class Window:
    """Decode cycles in one state, and the median time of one of them."""

    state: str
    median_ns: float


@dataclass(frozen=True, slots=True)
class Cost:
    """The median of a state's windows over the switched-off ones beside them, less one."""

    part: float
    cycle_ns: float
    windows: int


def cost_of(state: str, windows: Sequence[Window]) -> Cost:
    """Compare every window of a state with the mean of its two neighbours."""
    pairs = [
        (windows[i].median_ns, (windows[i - 1].median_ns + windows[i + 1].median_ns) / 2)
        for i in range(1, len(windows) - 1)
        if windows[i].state == state
    ]
    part = median(on / off - 1 for on, off in pairs)
    return Cost(part, median(on - off for on, off in pairs), len(pairs))


def null_of(windows: Sequence[Window]) -> float:
    """Return the median distance between a switched-off window and the next one."""
    off = [window.median_ns for window in windows if window.state == "off"]
    return median(abs(b / a - 1) for a, b in pairwise(off))


def told(part: float, null: float) -> str:
    """Return a word of caution where the null is the larger."""
    return "" if part > null else " or more: the tracer's cost is below the null"


def measured(requests: int, window: int) -> tuple[str, list[Window]]:
    """Run the job and return the kind of ring and the windows."""
    job = Job(
        RELEASE, graphs=(1,), running=1, new_tokens=(TOKENS,) * requests, traced=True,
        program="bench", fault="tape-runs-nothing",
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as name:
        checkpoints = Path(name) / "checkpoints"
        command = [str(python_of(RELEASE)), str(HARNESS / "checkpoints.py"), str(checkpoints)]
        subprocess.run(command, check=True)
        (Path(name) / "run").mkdir()
        ENVIRONMENT["BENCH_WINDOW"] = str(window)
        runs = Runs(checkpoints, lambda _: Path(name) / "run")
        found = runs.document(job)
    return found["ring"], [Window(state, median(times)) for state, times in found["windows"]]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--requests", type=int, default=3, help=f"of {TOKENS} tokens each")
    parser.add_argument("--window", type=int, default=4, help="decode cycles in one window")
    asked = parser.parse_args()
    ring, windows = measured(asked.requests, asked.window)
    off = median(window.median_ns for window in windows if window.state == "off")
    null = null_of(windows)
    tracer, profiler = (cost_of(state, windows) for state in ("tracer", "profiler"))
    print(f"cycle, nothing on    {off / 1e6:9.2f} ms   {len(windows)} windows of {asked.window}")
    print(f"null, off beside off {null:9.2%}")
    print(f"tracer ({ring} ring)  {tracer.part:9.2%}   {tracer.cycle_ns / 1e3:.0f} us a cycle")
    print(f"torch profiler       {profiler.part:9.2%}   {profiler.cycle_ns / 1e3:.0f} us a cycle")
    least = max(tracer.part, null)
    print(f"profiler / tracer    {profiler.part / least:9.0f} x{told(tracer.part, null)}")


if __name__ == "__main__":
    main()
