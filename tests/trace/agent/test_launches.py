"""Launches as a library tells them that answers as CUPTI does, and launches when it is told to."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.trace.agent.toy import (
    COUNTING,
    ENTER,
    EXIT,
    LAUNCHES,
    OVERHEAD,
    RUNNER,
    WORKER,
    Toy,
)

# Numbers and names of the driver's calls are those of CUDA 13's cupti_driver_cbid.h.
CUPTI = r"""
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
typedef struct {
    int site; const char *function; const void *parameters; void *returned; const char *symbol;
} Data;
typedef void (*Callback)(void *, int, uint32_t, const void *);
static const struct { uint32_t id; const char *name; } calls[] = {
    {9, "cuDeviceGet"}, {307, "cuLaunchKernel"}, {477, "cuLaunchCooperativeKernel"},
    {514, "cuGraphLaunch"}, {527, "cuLaunchHostFunc"}, {652, "cuLaunchKernelEx"},
};
static Callback callback;
static void *user;
static int enabled[1024];
int cuptiSubscribe(void **handle, Callback given, void *data)
{
    if (getenv("BUSY")) return 39;
    callback = given, user = data, *handle = (void *)77;
    return 0;
}
int cuptiGetResultString(int code, const char **text)
{
    *text = code == 39 ? "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED" : "CUPTI_ERROR_UNKNOWN";
    return 0;
}
int cuptiGetCallbackName(int domain, uint32_t id, const char **name)
{
    for (unsigned i = 0; domain == 1 && i < sizeof calls / sizeof *calls; i++)
        if (calls[i].id == id) return *name = calls[i].name, 0;
    return 1;
}
int cuptiEnableCallback(uint32_t on, void *handle, int domain, uint32_t id)
{
    if (handle != (void *)77 || domain != 1) return 1;
    enabled[id] = on;
    return 0;
}
int cuptiUnsubscribe(void *handle) { callback = NULL; return handle != (void *)77; }
int subscribed(void) { return callback != NULL; }
void call(const char *function, const char *symbol)
{
    for (unsigned i = 0; i < sizeof calls / sizeof *calls; i++)
        if (!strcmp(calls[i].name, function) && callback && enabled[calls[i].id])
            for (int site = 0; site < 2; site++) {
                Data data = {site, function, NULL, NULL, symbol};
                callback(user, 1, calls[i].id, &data);
            }
}
"""
DRIVER = """
    import ctypes, os, threading
    lib = ctypes.CDLL(os.environ["CUPTI"]) if "CUPTI" in os.environ else None
    def call(function, kernel=None):
        if lib is not None:
            lib.call(function, kernel)
    def eager():
        call(b"cuLaunchKernel", b"gemm")
        call(b"cuLaunchKernelEx", b"_Z40ncclDevKernel_AllReduce_Sum_bf16_RING_LL")
        call(b"cuLaunchCooperativeKernel", b"softmax")
        call(b"cuLaunchHostFunc")
        call(b"cuDeviceGet")
        thread = threading.Thread(target=call, args=(b"cuLaunchKernel", b"copy"))
        thread.start()
        thread.join()
    def replay():
        call(b"cuGraphLaunch")
"""
CYCLES = """
    import driver
    from toy.worker import Batch, Worker
    worker = Worker()
    print(worker.cycle(Batch(2)), worker.cycle(Batch(3)), driver.lib and driver.lib.subscribed())
"""


@pytest.fixture(scope="session")
def cupti(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cupti")
    (folder / "cupti.c").write_text(CUPTI, "utf-8")
    made = folder / "libcupti.so.99"
    compiler = shutil.which("cc") or shutil.which("gcc") or "cc"
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-o", str(made), str(folder / "cupti.c")], check=True
    )
    return made


@pytest.fixture
def launching(tmp_path: Path, extension: Path) -> Toy:
    """A toy whose forwards launch; kernels with ncclDevKernel in the name are collectives."""
    toy = Toy(tmp_path, "c", extension)
    toy.write("driver.py", DRIVER)
    for module, text, line, launch in (
        ("worker", WORKER, "return -forward", "eager"),
        ("runner", RUNNER, "self.bs = self", "replay"),
    ):  # fmt: skip
        toy.write(
            f"toy/{module}.py", text.replace(line, f"__import__('driver').{launch}(); {line}")
        )
    toy.extra["graph"] = {"size": ["bs"], "collectives": ["ncclDevKernel"]}
    return toy


def told(toy: Toy) -> list[tuple[int, ...]]:
    """Return the calls, and the graphs, kernels and collectives between them."""
    shown = {ENTER: (), EXIT: (), LAUNCHES: (), COUNTING: ()}
    return [
        (one.kind, one.size, one.value, one.object) if one.kind == LAUNCHES
        else (one.kind, one.value) if one.kind == COUNTING else (one.kind, one.target)
        for one in toy.records() if one.kind in shown
    ]  # fmt: skip


def test_launches_stand_between_the_calls_that_made_them(launching: Toy, cupti: Path) -> None:
    done = launching.trace(CYCLES, SPECMAP_LAUNCHES="1", CUPTI=str(cupti))
    assert done.stdout == "2 -3 1\n" and done.stderr == ""
    assert told(launching) == [
        (COUNTING, 1),
        (ENTER, 1), (ENTER, 2), (ENTER, 4), (LAUNCHES, 1, 0, 0), (EXIT, 4), (EXIT, 2), (EXIT, 1),
        (ENTER, 1), (ENTER, 2), (ENTER, 5), (LAUNCHES, 0, 3, 1), (EXIT, 5), (EXIT, 2), (EXIT, 1),
    ]  # fmt: skip
    assert launching.header()["launches"] is True


def test_nothing_asks_cupti_unless_asked_for(launching: Toy, cupti: Path) -> None:
    done = launching.trace(CYCLES, CUPTI=str(cupti))
    assert done.stdout == "2 -3 0\n"
    assert not {LAUNCHES, COUNTING} & {one.kind for one in launching.records()}


def test_another_tool_that_has_cupti_keeps_it(launching: Toy, cupti: Path) -> None:
    done = launching.trace(CYCLES, SPECMAP_LAUNCHES="1", CUPTI=str(cupti), BUSY="1")
    assert done.stdout == "2 -3 0\n"
    line = (
        "no launch counts: OSError: cuptiSubscribe says "
        "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED (39); the trace goes on without"
    )
    assert done.stderr == f"specmap: {line}\n"
    assert [one["text"] for one in launching.names("fault")] == [line]
    assert launching.counts()[1, EXIT] == 2 and launching.counts()[0, LAUNCHES] == 0


def test_without_cupti_the_trace_goes_on(launching: Toy, tmp_path: Path) -> None:
    (tmp_path / "libcupti.so").write_text("none")  # found before that of a machine with CUDA
    done = launching.trace(CYCLES, SPECMAP_LAUNCHES="1", LD_LIBRARY_PATH=str(tmp_path))
    assert done.stdout == "2 -3 None\n"
    assert done.stderr.startswith("specmap: no launch counts: OSError: ")
    assert "libcupti.so: file too short; the trace goes on without" in done.stderr
    assert done.stderr.count("\n") == 1
    assert launching.counts()[1, EXIT] == 2


def test_the_ring_in_python_counts_no_launches(launching: Toy, cupti: Path) -> None:
    launching.ring = "python"
    done = launching.trace(CYCLES, SPECMAP_LAUNCHES="1", CUPTI=str(cupti))
    assert done.stdout == "2 -3 0\n"
    assert "no launch counts: OSError: only the C ring counts them" in done.stderr
    assert launching.counts()[1, EXIT] == 2


def test_cupti_is_left_to_a_profiler_that_starts(launching: Toy, cupti: Path) -> None:
    launching.write("torch/__init__.py", "import torch.autograd.profiler")
    launching.write("torch/autograd/__init__.py", "")
    launching.write(
        "torch/autograd/profiler.py",
        """
        import driver
        class profile:
            def __init__(self, use_cpu=True):
                print("profiler", use_cpu, driver.lib.subscribed())
        """,
    )
    done = launching.trace(
        """
        import driver, torch
        from toy.worker import Batch, Worker
        worker = Worker()
        worker.cycle(Batch(2))
        for _ in range(2):
            torch.autograd.profiler.profile(use_cpu=False)
        worker.cycle(Batch(3))
        """,
        SPECMAP_LAUNCHES="1", CUPTI=str(cupti),
    )  # fmt: skip
    assert done.stdout == "profiler False 0\nprofiler False 0\n"
    assert done.stderr == (
        "specmap: launch counts end here: a profiler starts, and CUPTI serves one tool at a time\n"
    )
    kinds = [one for one in told(launching) if one[0] in (LAUNCHES, COUNTING)]
    assert kinds == [(COUNTING, 1), (LAUNCHES, 1, 0, 0), (COUNTING, 0)]


def test_a_window_without_the_tracer_is_one_without_cupti(launching: Toy, cupti: Path) -> None:
    launching.trace(
        """
        import driver
        from toy.worker import Batch, Worker
        worker = Worker()
        for _ in range(4):
            worker.cycle(Batch(3))
        """,
        SPECMAP_LAUNCHES="1", SPECMAP_WINDOWS="1", CUPTI=str(cupti),
    )  # fmt: skip
    seen = [
        (one.kind, one.value) for one in launching.records() if one.kind in (LAUNCHES, OVERHEAD)
    ]
    armed, disarmed = (OVERHEAD, 1), (OVERHEAD, 0)
    assert seen == [(LAUNCHES, 3), disarmed, armed, (LAUNCHES, 3), disarmed, armed]
