"""The real Scheduler of an SGLang release serves some requests on the CPU.

``driver.py JOB RESULT`` reads a job and writes, as JSON, what SGLang itself counted and which
graph objects were replayed. As SGLang does, it spawns a child that runs SGLang's own
``run_scheduler_process`` and event loop; only the queue of requests is ours.
"""

from __future__ import annotations

import inspect
import json
import multiprocessing
import signal
import sys
from array import array
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any


class AllServed(BaseException):
    """Every request is finished; it ends SGLang's endless loop."""


def rank(job_path: str, result_path: str, pipe: Connection, attach: Any = None) -> None:
    """Be the only rank of a server; ``attach(scheduler, job)`` returns who writes the result."""
    import faults
    import patches
    import stubs

    job = json.loads(Path(job_path).read_text("utf-8"))
    stubs.install(*patches.STUBS[job["release"]])
    from sglang.srt.managers import scheduler as module
    from sglang.srt.server_args import PortArgs, ServerArgs

    server_args = ServerArgs(**job["arguments"])
    patches.install(job["release"], tape=job["tape"])
    if job["fault"]:
        faults.install(job["fault"])
    watchers = []
    scheduler_class = module.Scheduler

    def watched(*args: Any, **kwargs: Any) -> Any:
        scheduler = scheduler_class(*args, **kwargs)
        watchers.append((attach or serve)(scheduler, job))
        return scheduler

    module.Scheduler = watched
    given = {"server_args": server_args, "port_args": PortArgs.init_new(server_args)}
    given |= {"pipe_writer": pipe, "gpu_id": 0, "dp_rank": None}
    for name, parameter in inspect.signature(module.run_scheduler_process).parameters.items():
        if parameter.default is inspect.Parameter.empty:
            given.setdefault(name, 0)  # every other rank
    try:
        module.run_scheduler_process(**given)
    except AllServed:
        Path(result_path).write_text(json.dumps(watchers[0].result(), indent=1), "utf-8")


def serve(scheduler: Any, job: dict[str, Any]) -> Any:
    """Watch a Scheduler and give it the requests of a job."""
    from truth import Truth

    truth = Truth(scheduler)
    ask(scheduler, job, truth)
    return truth


def ask(scheduler: Any, job: dict[str, Any], truth: Any) -> None:
    """Give a watched Scheduler the requests of a job."""
    requests = [
        request(f"r{i}", one["prompt"], one["new_tokens"], job["release"])
        for i, one in enumerate(job["requests"])
    ]
    feed(scheduler, requests, lambda: truth.finished(len(requests)))


def request(name: str, prompt: Sequence[int], new_tokens: int, release: str) -> Any:
    """Return a greedy request of exactly ``new_tokens`` tokens."""
    from sglang.srt.managers.io_struct import TokenizedGenerateReqInput
    from sglang.srt.sampling.sampling_params import SamplingParams

    sampling = SamplingParams(max_new_tokens=new_tokens, temperature=0.0, ignore_eos=True)
    sampling.normalize(None)
    known = inspect.signature(TokenizedGenerateReqInput).parameters
    values = {key: None for key, p in known.items() if p.default is inspect.Parameter.empty}
    values |= {
        "rid": name,
        "input_text": "",
        "input_ids": array("q", prompt) if release == "0.5.23" else list(prompt),
        "sampling_params": sampling,
        "return_logprob": False,
        "logprob_start_len": -1,
        "top_logprobs_num": 0,
        "stream": False,
    }
    return TokenizedGenerateReqInput(**values)


def feed(scheduler: Any, requests: list[Any], done: Any) -> None:
    """Put an in-memory queue in the place of SGLang's sockets."""
    waiting = [requests]

    def receive(*_: Any, **__: Any) -> list[Any]:
        if waiting:
            return waiting.pop()
        if done() and not getattr(scheduler, "result_queue", None):
            raise AllServed
        return []

    if hasattr(scheduler, "ingest_requests"):
        scheduler.ingest_requests = lambda *_: scheduler.process_input_requests(receive())
    else:
        scheduler.recv_requests = receive


def main(job_path: str, result_path: str, target: Any = rank) -> int:
    """Spawn the rank, wait for it, and return its exit code.

    A rank of SGLang that failed sends its parent SIGQUIT and exits with 0. Started by a shell in
    the background, this process would inherit that the signal is ignored.
    """
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    _, writer = multiprocessing.Pipe(duplex=False)
    context = multiprocessing.get_context("spawn")
    child = context.Process(target=target, args=(job_path, result_path, writer))
    child.start()
    child.join()
    return child.exitcode or 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
