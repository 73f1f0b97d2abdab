"""A real server over HTTP under ``specmap trace``: started by it, attached to, killed beneath it.

    python served.py OUT [SECONDS]

Starts ``sglang.launch_server`` with the small STANDALONE models of ``engine.py`` twice: once by
``specmap trace --live``, once asleep (``--dormant``). Requests come all the time. The sleeping
server is attached to, by a second tracer at the same time (which must be refused), again
afterwards, and once more while its scheduler is killed. What every command printed, and its exit
code, goes to OUT and to standard output. Needs specmap and SGLang in one Python, and one GPU.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

from benchmarks.gpu.engine import server_arguments, write_checkpoints

TRACE = [sys.executable, "-m", "specmap", "trace"]
REQUESTS, TOKENS = 4, 64


def command_of(port: int) -> list[str]:
    """Return the command line of a server."""
    given = server_arguments({"algorithm": "STANDALONE", "extra": {"port": port}})
    words = [sys.executable, "-m", "sglang.launch_server"]
    for name, value in given.items():
        flag = f"--{name.replace('_', '-')}"
        if value is not None and value is not False:
            words += [flag] if value is True else [flag, str(value)]
    return words


def ask(port: int, path: str, body: dict[str, Any] | None = None) -> Any:
    """Send one request and return its answer."""
    data = None if body is None else json.dumps(body).encode()
    head = {"Content-Type": "application/json"}
    asked = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data, head)
    with urllib.request.urlopen(asked, timeout=30) as answer:
        return json.loads(answer.read() or b"null")


class Load:
    """Requests to a server from several threads, until it is gone or the load is stopped."""

    def __init__(self, port: int) -> None:
        """Start sending."""
        self._port, self._stopped = port, threading.Event()
        self.answers: list[list[int]] = [[] for _ in range(REQUESTS)]
        self.texts: list[set[tuple[int, ...]]] = [set() for _ in range(REQUESTS)]
        for number in range(REQUESTS):
            threading.Thread(target=self._send, args=(number,), daemon=True).start()

    def _send(self, number: int) -> None:
        prompt = [(i * (number + 3)) % 2000 + 3 for i in range(number, number + 32)]
        sampling = {"temperature": 0, "max_new_tokens": TOKENS, "ignore_eos": True}
        while not self._stopped.is_set():
            with contextlib.suppress(OSError, ValueError):
                found = ask(
                    self._port, "/generate", {"input_ids": prompt, "sampling_params": sampling}
                )
                self.answers[number].append(len(found["output_ids"]))
                self.texts[number].add(tuple(found["output_ids"]))
                continue
            self._stopped.wait(0.1)

    def stop(self) -> str:
        """Stop; say how many answers came, and whether a prompt always got the same."""
        self._stopped.set()
        same = all(len(texts) == 1 for texts in self.texts)
        short = sum(count != TOKENS for counts in self.answers for count in counts)
        counts = [len(each) for each in self.answers]
        return f"answers {counts}, {short} short, each prompt always the same tokens: {same}"


class Show:
    """Runs tracers, and prints and keeps what they say."""

    def __init__(self, out: Path, until: float) -> None:
        """Write into ``out``; nothing may last longer than ``until``."""
        self.out, self._until = out, until
        self._lock = threading.Lock()

    def tracer(self, name: str, *words: str) -> subprocess.Popen[bytes]:
        """Start a tracer."""
        print(f"$ {name}: specmap trace {' '.join(words)[:200]}", flush=True)
        with (self.out / f"{name}.txt").open("wb") as file:
            return subprocess.Popen(
                [*TRACE, *words], stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT
            )

    def ended(self, name: str, process: subprocess.Popen[bytes]) -> None:
        """Wait for a tracer, and print what it said."""
        start = time.monotonic()
        try:
            code: int | str = process.wait(max(1.0, self._until - start))
        except subprocess.TimeoutExpired:
            process.kill()
            code = "killed at the time limit"
        text = (self.out / f"{name}.txt").read_text("utf-8", "replace")
        print(f"== {name}: exit {code}, {time.monotonic() - start:.1f} s\n{text}", flush=True)

    def healthy(self, port: int, process: subprocess.Popen[bytes]) -> bool:
        """Wait until a server answers."""
        while time.monotonic() < self._until and process.poll() is None:
            with contextlib.suppress(OSError, ValueError):
                ask(port, "/model_info")
                return True
            time.sleep(0.3)
        print(f"no server at port {port}: exit {process.poll()}", flush=True)
        return False


def live(show: Show, port: int) -> None:
    """Trace a server from its start for some cycles, then stop it."""
    words = ["--live", "--cycles", "300", "--stop-after", "--dir", str(show.out / "live")]
    words += ["--log", str(show.out / "live.log"), "--", *command_of(port)]
    tracer = show.tracer("live", *words)
    if show.healthy(port, tracer):
        load = Load(port)
        show.ended("live", tracer)
        print(load.stop(), flush=True)
    else:
        show.ended("live", tracer)


def children(pid: int) -> Iterator[int]:
    """Yield the processes below one, itself included."""
    yield pid
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            yield from children(int(child))


def scheduler_below(pid: int) -> int:
    """Return the process that names itself a scheduler."""
    for child in children(pid):
        if b"scheduler" in Path(f"/proc/{child}/cmdline").read_bytes():
            return child
    raise LookupError("no scheduler below the server")


def attached(show: Show, port: int) -> None:
    """Attach to a sleeping server: twice in turn, twice at once, and while it is killed."""
    with (show.out / "dormant.log").open("wb") as log:
        server = subprocess.Popen(
            [*TRACE, "--live", "--dormant", "--", *command_of(port)],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip
    try:
        if not show.healthy(port, server):
            return
        load = Load(port)
        attach = ["--attach", str(server.pid), "--quiet"]
        first = show.tracer("first", *attach, "--seconds", "8", "--dir", str(show.out / "first"))
        while first.poll() is None and not list((show.out / "first").glob("*.spool")):
            time.sleep(0.1)
        second = show.tracer("second", *attach, "--cycles", "9", "--dir", str(show.out / "second"))
        show.ended("second", second)
        show.ended("first", first)
        again = show.tracer(
            "again", *attach, "--cycles", "200", "--spans", "--launches",
            "--dir", str(show.out / "again"),
        )  # fmt: skip
        show.ended("again", again)
        folder = show.out / "killed"
        killed = show.tracer("killed", *attach, "--seconds", "60", "--dir", str(folder))
        while killed.poll() is None and not list(folder.glob("*.spool")):
            time.sleep(0.1)
        time.sleep(2.0)
        os.kill(scheduler_below(server.pid), signal.SIGKILL)
        show.ended("killed", killed)
        print(load.stop(), flush=True)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(server.pid, signal.SIGKILL)
        server.wait()


def main(out: Path, seconds: float) -> None:
    """Run both."""
    out.mkdir(parents=True, exist_ok=True)
    show = Show(out, time.monotonic() + seconds)
    write_checkpoints()
    live(show, 31200)
    attached(show, 31400)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), float(sys.argv[2]) if len(sys.argv) > 2 else 400.0)
