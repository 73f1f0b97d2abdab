"""``launch_server`` over HTTP, started as a container does it, and attached to while it serves."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from specmap.trace.launch import inject_folder
from tests.live.environment import python_of
from tests.live.serving import HARNESS, JOB, TIMEOUT_S, plain_environment
from tests.live.test_trace import STEADY, V1

pytestmark = pytest.mark.live
TOKENS = 12


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def ask(port: int, path: str, body: dict[str, Any] | None = None) -> bytes:
    data = None if body is None else json.dumps(body).encode()
    asked = urllib.request.Request(
        f"http://127.0.0.1:{port}{path}", data, {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(asked, timeout=TIMEOUT_S) as answer:
        return bytes(answer.read())


@contextmanager
def serving(folder: Path, environment: dict[str, str]) -> Iterator[tuple[int, int]]:
    """Start the server; yield its process and its port once it answers."""
    port = free_port()
    command = [str(python_of(V1.release)), str(HARNESS / "server.py"), str(folder / JOB), str(port)]
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(
            command, env=environment, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
    try:
        until = time.monotonic() + TIMEOUT_S
        while True:
            assert server.poll() is None, (folder / "log").read_text("utf-8")[-3000:]
            assert time.monotonic() < until
            try:
                ask(port, "/health")
                break
            except OSError:
                time.sleep(0.2)
        yield server.pid, port
    finally:
        server.terminate()
        server.wait(TIMEOUT_S)


def test_a_server_is_attached_to_over_its_socket(checkpoints: Path, tmp_path: Path) -> None:
    """Without a plan in its environment: the rank learns which it is when it is armed."""
    job = replace(V1, traced=False)
    document = job.document(checkpoints)
    (tmp_path / JOB).write_text(json.dumps(document), "utf-8")
    mine = {**plain_environment(), "SPECMAP_SOCKETS": str(tmp_path / "s")}
    dormant = {"SPECMAP_TRACE": "dormant", "PYTHONPATH": str(inject_folder())}
    with serving(tmp_path, mine | job.environment() | dormant) as (pid, port):
        command = [sys.executable, "-m", "specmap", "trace", "--attach", str(pid), "--quiet"]
        command += ["--cycles", "4", "--dir", str(tmp_path / "run")]
        with subprocess.Popen(
            command, env=mine, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as tracer:
            while tracer.poll() is None and not list(tmp_path.glob("run/plan.json")):
                time.sleep(0.1)
            time.sleep(1.0)
            sampling = {"max_new_tokens": TOKENS, "temperature": 0, "ignore_eos": True}
            prompt = document["requests"][0]["prompt"]
            while tracer.poll() is None:
                body = {"input_ids": prompt, "sampling_params": sampling}
                answer = json.loads(ask(port, "/generate", body))
                assert len(answer["output_ids"]) == TOKENS
            out, err = tracer.communicate(timeout=TIMEOUT_S)
    assert (tracer.returncode, err) == (0, ""), out
    for phase in STEADY:
        assert re.search(rf"\b{phase}\b.*\bGRAPH\b", out), out
    (header,) = (tmp_path / "run").glob("rank-*[0-9].json")
    found = json.loads(header.read_bytes())
    assert (found["tp_rank"], found["finished"]) == (0, True)
    assert found["arguments"]["speculative_algorithm"] == job.algorithm
