"""Runs a job in a process of its own, and reads what SGLang counted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.live.environment import python_of
from tests.live.jobs import Job
from tests.live.observing import agent_in

HARNESS = Path(__file__).parent / "harness"
TIMEOUT_S = 540
PARALLEL = 2
JOB, RESULT, TRACE = "job.json", "result.json", "trace"


@dataclass(frozen=True, slots=True)
class Batch:
    """One batch that the scheduler ran: a cycle of the worker.

    ``replays`` are the (runner, captured size) of the graph objects that were replayed, in
    order; ``layers`` counts the decoder layers of each model whose Python ran.
    """

    mode: str
    size: int
    replays: tuple[tuple[str, int], ...]
    layers: Mapping[str, int]
    draft_forwards: int
    can_run_cuda_graph: bool
    accepted: tuple[int, ...]

    @property
    def owners(self) -> tuple[str, ...]:
        """The runners that replayed, in order."""
        return tuple(name for name, _ in self.replays)


@dataclass(frozen=True, slots=True)
class Answer:
    """One request: its tokens, and SGLang's count of its verify steps and accepted drafts."""

    tokens: tuple[int, ...]
    verifies: int
    accepted: int


@dataclass(frozen=True, slots=True)
class Served:
    """What SGLang and the tapes counted in one process."""

    worker: str
    captured: Mapping[str, Sequence[int]]
    batches: tuple[Batch, ...]
    answers: tuple[Answer, ...]

    @property
    def decoded(self) -> tuple[Batch, ...]:
        """The batches after the prefill."""
        return tuple(batch for batch in self.batches if batch.mode == "DECODE")

    @property
    def tokens(self) -> list[tuple[int, ...]]:
        """The tokens of every request."""
        return [answer.tokens for answer in self.answers]


class ServingError(AssertionError):
    """SGLang did not get through its requests; the message has the end of its log."""


@dataclass(frozen=True, slots=True)
class Ended:
    """A process that ended: its exit code, all that it printed, and its folder."""

    code: int
    log: str
    folder: Path

    @property
    def said(self) -> list[str]:
        """The lines of the tracer to a person."""
        return [line for line in self.log.splitlines() if line.startswith("specmap: ")]


class Runs:
    """Every job runs once a session, two at a time; asking for a result waits for it."""

    def __init__(
        self,
        checkpoints: Path,
        folder_of: Callable[[Job], Path],
        trees: Mapping[tuple[str, str], Path] | None = None,
    ) -> None:
        self.checkpoints = checkpoints
        self._folder_of = folder_of
        self._trees = trees or {}
        self._pool = ThreadPoolExecutor(PARALLEL)
        self._started: dict[Job, Future[Ended]] = {}

    def start(self, job: Job) -> Future[Ended]:
        """Put a job into the queue, unless it is there."""
        if job not in self._started:
            folder = self._folder_of(job)
            tree = self._trees[job.release, job.tree] if job.tree else None
            self._started[job] = self._pool.submit(run, job, self.checkpoints, folder, tree)
        return self._started[job]

    def ended(self, job: Job) -> Ended:
        """Return how a job ended, well or badly."""
        return self.start(job).result()

    def document(self, job: Job) -> Any:
        """Return what a job wrote as its result.

        Raises:
            ServingError: the process failed or hung.
        """
        ended = self.ended(job)
        if ended.code != 0:
            tail = "\n".join(ended.log.splitlines()[-30:])
            raise ServingError(f"exit code {ended.code}\n{tail}")
        return json.loads((ended.folder / RESULT).read_text("utf-8"))

    def trace(self, job: Job) -> Path:
        """Return the folder that the tracer of an ended job wrote to."""
        return self.ended(job).folder / TRACE

    def __getitem__(self, job: Job) -> Served:
        return served(self.document(job), job)

    def close(self) -> None:
        """Forget what has not started."""
        self._pool.shutdown(cancel_futures=True)


def run(job: Job, checkpoints: Path, folder: Path, tree: Path | None = None) -> Ended:
    """Run the process of a job to its end, or stop it when it hangs; SGLang is in ``tree``."""
    (folder / JOB).write_text(json.dumps(job.document(checkpoints)), "utf-8")
    program = str(HARNESS / f"{job.program}.py")
    command = [str(python_of(job.release)), program, str(folder / JOB), str(folder / RESULT)]
    environment = {**plain_environment(), **job.environment()}
    if tree is not None:
        environment["PYTHONPATH"] = str(tree)
    if job.traced:
        environment |= agent_in(folder / TRACE, job.release, job.place)
    if job.command:
        options = ["--live", "--quiet", "--dir", str(folder / TRACE)]
        command = [sys.executable, "-m", "specmap", "trace", *options, "--", *command]
    if job.place == "full-disk":
        command = [*on_full_disk(folder / TRACE), *command]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=log,
            stderr=subprocess.STDOUT, cwd=folder,
        )  # fmt: skip
        try:
            code = process.wait(TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            code = process.wait()
    return Ended(code, (folder / "log").read_text("utf-8", "replace"), folder)


def on_full_disk(folder: Path) -> list[str]:
    """Return what runs a command where the folder is a disk of 32 KiB."""
    script = 'mount -t tmpfs -o size=32k tmpfs "$0" && exec "$@"'
    return ["unshare", "--map-root-user", "--mount", "sh", "-c", script, str(folder)]


def plain_environment() -> dict[str, str]:
    """Return this process's environment without what would reach into SGLang."""
    unwanted = ("SGLANG_", "SPECMAP_", "PYTHON", "TRITON_", "TORCH")
    return {key: value for key, value in os.environ.items() if not key.startswith(unwanted)}


def served(found: dict[str, Any], job: Job) -> Served:
    """Return what the driver wrote."""
    batches = (
        Batch(
            **{
                **batch,
                "replays": tuple((name, size) for name, size in batch["replays"]),
                "accepted": tuple(batch["accepted"] or ()),
            }
        )
        for batch in found["batches"]
    )
    answers = (
        Answer(tuple(one["tokens"][:wanted]), one["verifies"], one["accepted"])
        for one, wanted in zip(found["requests"], job.new_tokens, strict=True)
    )
    return Served(found["worker"], found["captured"], tuple(batches), tuple(answers))
