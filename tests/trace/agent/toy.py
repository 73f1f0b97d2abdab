"""A tiny package with a worker, traced in a process of its own; records read independently."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import dedent
from typing import Any

AGENT = Path(__file__).parents[3] / "specmap" / "trace" / "agent"
ENTER, EXIT, RAISE, REASON, REPLAY, CAPTURE_BEGIN, CAPTURE_END, SYNC = range(1, 9)
GPU_SPAN, ACCEPT, DROPS, ARM, DISARM, NOTE, OVERHEAD, LAUNCHES, COUNTING = range(9, 18)

WORKER = """
    import enum
    from toy.runner import Runner, chosen

    class Mode(enum.IntEnum):
        EXTEND = 1
        DECODE = 2

    class Batch:
        def __init__(self, size, mode=Mode.DECODE):
            self.batch_size, self.forward_mode = size, mode

    class Worker:
        def __init__(self, tp_rank=0):
            self.runner = Runner()

        def cycle(self, batch):
            return self.verify(batch)

        def verify(self, forward_batch):
            if chosen(forward_batch) and self.runner.can_run(forward_batch):
                return self.runner.replay(forward_batch)
            return self.eager(forward_batch)

        def eager(self, forward_batch):
            if forward_batch.batch_size > 100:
                raise ValueError("too large")
            return -forward_batch.batch_size
"""
RUNNER = """
    def chosen(forward_batch):
        return True

    class Runner:
        def __init__(self):
            self.max_bs, self.bs = 2, None

        def can_run(self, forward_batch):
            cuda_graph_bs = forward_batch.batch_size
            is_bs_supported = cuda_graph_bs <= self.max_bs
            return is_bs_supported

        def replay(self, forward_batch):
            self.bs = self.max_bs
            return forward_batch.batch_size
"""


@dataclass(frozen=True)
class Record:
    """One record, as the interface lays it out."""

    t_ns: int
    target: int
    kind: int
    mode: int
    size: int
    value: int
    object: int


@dataclass
class Toy:
    """The package, its plan, and the folder of the run."""

    folder: Path
    ring: str = "python"
    extension: Path | None = None
    python: str = sys.executable
    targets: list[dict[str, Any]] = field(default_factory=list)
    extra: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.run = self.folder / "run"
        self.run.mkdir()
        self.write("toy/__init__.py", "")
        self.write("toy/worker.py", WORKER)
        self.write("toy/runner.py", RUNNER)
        self.target(1, "toy.worker", "Worker.cycle", "entry")
        self.target(2, "toy.worker", "Worker.verify", "phase")
        self.target(3, "toy.runner", "Runner.can_run", "decision")
        self.target(4, "toy.runner", "Runner.replay", "sink", sink="graph")
        self.target(5, "toy.worker", "Worker.eager", "sink", sink="eager")

    def write(self, path: str, text: str) -> None:
        """Write a module of the package."""
        file = self.folder / "src" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(dedent(text), "utf-8")

    def target(self, number: int, module: str, qualname: str, *roles: str, **more: Any) -> None:
        """Plan a target."""
        self.targets.append(
            {"id": number, "module": module, "qualname": qualname, "roles": list(roles),
             "file": "", "line": 1, "sink": None, "expressions": [], **more}
        )  # fmt: skip

    def plan(self) -> Path:
        """Write the plan."""
        path = self.run / "plan.json"
        batch = {"attribute": "forward_mode", "size": ["batch_size"], "enum": "toy.worker:Mode",
                 "parameters": ["forward_batch", "batch"]}  # fmt: skip
        rank = {"process": ["toy.worker:Worker.__init__"], "names": {"tp_rank": ["tp_rank"]}}
        plan = {"schema": 1, "package": "toy", "batch": batch, "graph": {"size": ["bs"]},
                "accept": [], "rank": rank, "targets": self.targets, "workers": []}  # fmt: skip
        path.write_text(json.dumps({**plan, **self.extra}), "utf-8")
        return path

    def environment(self, **more: str) -> dict[str, str]:
        """Return the environment of a traced process."""
        path = os.pathsep.join([str(AGENT / "inject"), str(self.folder / "src")])
        kept = {name: value for name, value in os.environ.items() if "SPECMAP" not in name}
        return {
            **kept, "PYTHONPATH": path, "SPECMAP_TRACE": "1", "SPECMAP_DIR": str(self.run),
            "SPECMAP_SOCKETS": str(self.folder / "s"), "SPECMAP_RING_KIND": self.ring,
            "SPECMAP_EXTENSION": str(self.extension or ""), "PYTHONDONTWRITEBYTECODE": "1", **more,
        }  # fmt: skip

    def start(self, script: str, **more: str) -> subprocess.Popen[str]:
        """Start a traced process."""
        self.plan()
        return subprocess.Popen(
            [self.python, "-c", dedent(script)], env=self.environment(**more), text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def trace(self, script: str, **more: str) -> subprocess.CompletedProcess[str]:
        """Run a traced process to its end, which must be a good one."""
        self.plan()
        done = subprocess.run(
            [self.python, "-c", dedent(script)], env=self.environment(**more), text=True,
            capture_output=True, timeout=60, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done

    def spools(self) -> list[Path]:
        """Return the spools of all ranks."""
        return sorted(self.run.glob("*.spool"))

    def records(self) -> list[Record]:
        """Return the records of the only rank."""
        (spool,) = self.spools()
        raw = spool.read_bytes()
        assert raw[:16] == b"SPECMAP1" + struct.pack("<II", 32, 1)
        return [Record(*one) for one in struct.iter_unpack("<QIHhiiQ", raw[64:])]

    def header(self) -> dict[str, Any]:
        """Return the header of the only rank."""
        (path,) = (one for one in self.run.glob("rank-*.json"))
        header: dict[str, Any] = json.loads(path.read_text("utf-8"))
        return header

    def names(self, kind: str = "reason") -> list[dict[str, Any]]:
        """Return the only rank's names of one kind."""
        (path,) = self.run.glob("*.names")
        lines = map(json.loads, path.read_text("utf-8").splitlines())
        return [one for one in lines if one["kind"] == kind]

    def counts(self) -> Counter[tuple[int, int]]:
        """Return how many records there are by (target, kind)."""
        return Counter((one.target, one.kind) for one in self.records())
