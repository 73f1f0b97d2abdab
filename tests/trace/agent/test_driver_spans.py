"""GPU spans through a driver that answers late, and refuses where it is told to."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.trace.agent.test_torch import GRAPH, TORCH
from tests.trace.agent.toy import DISARM, GPU_SPAN, OVERHEAD, Toy

# An event is ready once two later ones have been recorded; each takes a quarter of a millisecond.
# 600 is CUDA_ERROR_NOT_READY, 400 CUDA_ERROR_INVALID_HANDLE.
DRIVER = r"""
#include <stdio.h>
#include <stdlib.h>
static long made, recorded, at[1024];
static void *stream[1024];
static int refused(const char *name)
{
    const char *which = getenv("REFUSES");
    return which != NULL && which[0] == name[0] ? 400 : 0;
}
int cuEventCreate(void **event, unsigned flags) { return *event = (void *)++made, (int)flags; }
int cuEventRecord(void *event, void *on)
{
    at[(long)event] = ++recorded, stream[(long)event] = on;
    return refused("record");
}
int cuEventElapsedTime(float *ms, void *start, void *end)
{
    if (stream[(long)start] != stream[(long)end] || refused("elapsed")) return 400;
    if (recorded < at[(long)end] + 2) return 600;
    *ms = 0.25f * (float)(at[(long)end] - at[(long)start]);
    return 0;
}
long events(void) { return recorded; }
"""
CYCLES = """
    import ctypes, torch
    from toy.worker import Batch, Worker
    worker = Worker()
    for number in range(26):
        torch.cuda.raw = number // 9
        worker.cycle(Batch(1))
    print(ctypes.CDLL("libcuda.so.1").events(), torch.Event.recorded)
"""


@pytest.fixture
def driven(tmp_path: Path, extension: Path) -> Toy:
    toy = Toy(tmp_path, "c", extension)
    toy.write("torch/__init__.py", TORCH)
    toy.extra["graph"] = GRAPH
    (tmp_path / "cuda.c").write_text(DRIVER, "utf-8")
    compiler = shutil.which("cc") or shutil.which("gcc") or "cc"
    made = [compiler, "-shared", "-fPIC", "-o", str(tmp_path / "libcuda.so.1")]
    subprocess.run([*made, str(tmp_path / "cuda.c")], check=True)
    return toy


def spans(toy: Toy) -> list[tuple[int, int, int]]:
    return [(one.target, one.value, one.object) for one in toy.records() if one.kind == GPU_SPAN]


@pytest.mark.parametrize(("every", "known"), [(8, [8]), (1, list(range(1, 23)))])
def test_the_ring_records_and_reads_them_itself(driven: Toy, every: int, known: list[int]) -> None:
    """From the second cycle on; read after cycles 7, 15 and 23; torch's events are left alone."""
    done = driven.trace(CYCLES, SPECMAP_SPANS=str(every), LD_LIBRARY_PATH=str(driven.folder))
    timed = len(range(every, 26, every))
    assert done.stdout == f"{2 * timed} 0\n" and done.stderr == ""
    assert spans(driven) == [(2, 250_000, number) for number in known]
    assert (driven.header()["spans"], driven.header()["spans_dropped"]) == (every, 0)


def test_what_is_not_ready_in_time_is_dropped_and_counted(driven: Toy) -> None:
    """The only pair of cycle 20 is never ready; it is given up after cycle 39."""
    done = driven.trace(
        """
        from toy.worker import Batch, Worker
        import torch
        worker = Worker()
        for number in range(40):
            worker.cycle(Batch(1))
        """,
        SPECMAP_SPANS="20", LD_LIBRARY_PATH=str(driven.folder),
    )  # fmt: skip
    assert done.stderr == "" and spans(driven) == []
    assert driven.header()["spans_dropped"] == 1


@pytest.mark.parametrize("call", ["record", "elapsed"])
def test_a_driver_that_refuses_costs_the_spans_and_one_line(driven: Toy, call: str) -> None:
    done = driven.trace(CYCLES, SPECMAP_SPANS="1", LD_LIBRARY_PATH=str(driven.folder), REFUSES=call)
    assert done.stderr == "specmap: no GPU spans any more: the driver says 400\n"
    assert spans(driven) == []
    assert driven.counts()[1, 2] == 26


def test_none_is_recorded_while_a_graph_is_captured(driven: Toy) -> None:
    done = driven.trace(
        """
        import ctypes, torch
        from toy.worker import Batch, Worker
        worker, graph, driver = Worker(), torch.CUDAGraph(), ctypes.CDLL("libcuda.so.1")
        worker.cycle(Batch(1))
        graph.capture_begin()
        worker.cycle(Batch(1))
        print(driver.events())
        graph.capture_end()
        worker.cycle(Batch(1))
        print(driver.events())
        """,
        SPECMAP_SPANS="1", LD_LIBRARY_PATH=str(driven.folder),
    )  # fmt: skip
    assert done.stdout == "0\n2\n"


def test_a_window_without_the_tracer_has_none(driven: Toy) -> None:
    driven.trace(CYCLES, SPECMAP_SPANS="1", SPECMAP_WINDOWS="5", LD_LIBRARY_PATH=str(driven.folder))
    armed = [number for number in range(1, 23) if number // 5 % 2 == 0]
    assert [number for _, _, number in spans(driven)] == armed
    assert {DISARM, OVERHEAD} <= {one.kind for one in driven.records()}


@pytest.mark.parametrize("driver", ["", "libcuda.so.1"])
def test_without_cuda_in_the_process_one_line_says_so(driven: Toy, driver: str) -> None:
    """The C ring by the driver, and without a driver torch's events."""
    if not driver:
        (driven.folder / "libcuda.so.1").unlink()
    done = driven.trace(
        """
        import torch
        torch.cuda.is_initialized = lambda: False
        from toy.worker import Batch, Worker
        worker = Worker()
        for number in range(4):
            worker.cycle(Batch(1))
        """,
        SPECMAP_SPANS="1", LD_LIBRARY_PATH=str(driven.folder),
    )  # fmt: skip
    assert done.stderr == "specmap: no GPU times: CUDA is not in use in this process\n"
    assert spans(driven) == []
