"""The scripts for GPU machines, as far as a CPU can tell: what they count and in which order."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar

import pytest

from benchmarks.gpu import launches, matrix

FILE = "sglang/srt/speculative/worker.py"
PLAN = {
    "targets": [
        {"id": 1, "file": FILE, "qualname": "Worker.step"},
        {"id": 2, "file": FILE, "qualname": "Worker.verify"},
    ],
    "workers": [{"entry": 1, "phases": [{"name": "verify", "scope": 2}]}],
    "graph": {"collectives": ["ncclDevKernel", "all_reduce"]},
}
ENGINE = """
import json, os, sys, time
from pathlib import Path
sys.path.insert(0, {folder!r})
import engine

name = sys.argv[1]
with engine.turn():
    for word in ("begins", "ends"):
        with Path({told!r}).open("a") as file:
            file.write(f"{{name}} {{word}}\\n")
        time.sleep(0.2)
"""


def call(name: str, at: int, correlation: int, kind: str = "cuda_runtime") -> dict[str, Any]:
    return {
        "cat": kind, "name": name, "ts": at, "dur": 4, "tid": 1,
        "args": {"correlation": correlation},
    }  # fmt: skip


def test_collectives_of_a_profile_are_those_launched_one_by_one_in_the_phase(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Kineto gives a kernel the number of its launch; those of a graph have the graph's."""
    step = {"cat": "python_function", "ts": 0, "dur": 100, "tid": 1}
    events = [
        step | {"name": f"/x/{FILE}(7): step"},
        step | {"name": f"/x/{FILE}(9): verify", "ts": 10, "dur": 50},
        call("cudaLaunchKernelExC", 2, 1),  # in front of the phase
        call("cudaLaunchKernel", 20, 2),
        call("cudaLaunchKernelExC", 30, 3),
        call("cuLaunchKernelEx", 31, 3, "cuda_driver"),  # the same launch, seen twice
        call("cudaGraphLaunch", 40, 4),
        *(call(name, 90, number, "kernel") for name, number in (
            ("ncclDevKernel_AllReduce", 1), ("elementwise", 2), ("ncclDevKernel_AllReduce", 3),
            ("void all_reduce<2>", 4),
        )),
    ]  # fmt: skip
    (tmp_path / "plan.json").write_text(json.dumps(PLAN), "utf-8")
    (tmp_path / "trace.json").write_text(json.dumps({"traceEvents": events}), "utf-8")
    launches.profiled(tmp_path, tmp_path / "trace.json")
    assert capsys.readouterr().out.endswith(
        " verify: graphs, kernels, collectives: 1 x (1, 2, 1)\n"
    )


def test_engines_with_one_file_send_their_waves_one_after_the_other(tmp_path: Path) -> None:
    told, folder = tmp_path / "told", str(Path(matrix.__file__).parent)
    code = ENGINE.format(folder=folder, told=str(told))
    running = [
        subprocess.Popen([sys.executable, "-c", code, name], env={"TURNS": str(tmp_path / "t")})
        for name in "abc"
    ]
    assert [process.wait(60) for process in running] == [0, 0, 0]
    lines = told.read_text("utf-8").split()
    assert lines[1::2] == ["begins", "ends"] * 3
    assert all(lines[i] == lines[i + 2] for i in (0, 4, 8))


def test_an_engine_that_hangs_is_killed_and_its_folders_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of the recordings that a wave asks for gets the plan before the engine starts."""
    (tmp_path / "engine.py").write_text("import time\ntime.sleep(60)\n", "utf-8")
    monkeypatch.setattr(matrix, "HERE", tmp_path)
    plan, runs = tmp_path / "p.json", tmp_path / "runs"
    plan.write_text("{}", "utf-8")
    arm = {"do": "arm", "dir": str(runs / "one.steady")}
    case = {"name": "one", "waves": [{"tell": [arm]}], "limit_s": 0.5}
    start = time.monotonic()
    said = matrix.run_case(case, runs, plan, tmp_path, tmp_path)
    assert said.startswith("one: exit timeout, ")
    assert time.monotonic() - start < 30
    assert (runs / "one.steady" / "plan.json").read_text("utf-8") == "{}"


class Runner:
    model_runner = SimpleNamespace(tp_rank=1)

    def can_run(self) -> bool:
        return True


class ModelRunner:
    """Runs a pass; ``seen`` is whether the communicator of the graphs was off meanwhile."""

    group = SimpleNamespace(pynccl_comm=SimpleNamespace(disabled=True))
    seen: ClassVar[list[bool]] = []

    def forward(self) -> bool:
        said = Runner().can_run()
        self.seen.append(self.group.pynccl_comm.disabled)
        return said


class Scheduler:
    """Asks twice a batch, as SGLang's second kind of worker does for its verify pass."""

    def run_batch(self, between: Callable[[], object]) -> list[bool]:
        prepared = Runner().can_run()
        between()
        return [prepared, ModelRunner().forward()]


def test_the_forced_rank_begins_between_two_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pass that was prepared as a replay and then runs eager reads what is not there.

    The communicator of the graphs is on in the eager pass alone: in a prefill of both ranks it
    would be on in one of them.
    """
    modules: dict[str, dict[str, Any]] = {
        "managers.scheduler": {"Scheduler": Scheduler},
        "model_executor": {},
        "model_executor.cuda_graph_runner": {"CudaGraphRunner": Runner},
        "model_executor.model_runner": {"ModelRunner": ModelRunner},
        "distributed.parallel_state": {"get_tp_group": lambda: ModelRunner.group},
    }
    for name, members in {"": {}, "managers": {}, "distributed": {}, **modules}.items():
        full = f"sglang.srt.{name}".rstrip(".")
        module = ModuleType(full)
        vars(module).update(members)
        monkeypatch.setitem(sys.modules, full, module)
    monkeypatch.setitem(sys.modules, "sglang", ModuleType("sglang"))
    flag = tmp_path / "flag"
    monkeypatch.setenv("SPECMAP_FORCED_FLAG", str(flag))
    monkeypatch.syspath_prepend(str(Path(matrix.__file__).parent / "forced"))
    original = Scheduler.run_batch
    importlib.import_module("specmap_forced").install()

    def switched() -> None:
        flag.touch()
        until = time.monotonic() + 20
        while Scheduler.run_batch is original and time.monotonic() < until:
            time.sleep(0.02)

    scheduler = Scheduler()
    assert scheduler.run_batch(switched) == [True, True]
    assert scheduler.run_batch(lambda: None) == [False, False]
    assert Scheduler.run_batch is original
    assert ModelRunner.seen == [True, False]
    assert ModelRunner.group.pynccl_comm.disabled
