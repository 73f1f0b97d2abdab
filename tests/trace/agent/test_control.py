"""The socket of a sleeping agent."""

from __future__ import annotations

import json
import os
import socket
import stat
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import Any, Self

import pytest

from tests.trace.agent.toy import AGENT, ARM, DISARM, ENTER, REASON, Toy

ASKED = """
    import sys
    from toy.worker import Batch, Worker
    worker = Worker(tp_rank=1)
    own = (Worker.cycle, Worker.verify.__code__, worker.runner.can_run.__func__.__code__)
    print("ready", flush=True)
    for line in sys.stdin:
        word, _, number = line.strip().partition(" ")
        if word == "same":
            now = (Worker.cycle, Worker.verify.__code__, worker.runner.can_run.__func__.__code__)
            print(all(a is b for a, b in zip(own, now)), flush=True)
        else:
            print(worker.cycle(Batch(int(number))), flush=True)
"""


@contextmanager
def asleep(toy: Toy, **more: str) -> Iterator[subprocess.Popen[str]]:
    with toy.start(ASKED, **{"SPECMAP_TRACE": "dormant", **more}) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        try:
            yield process
        finally:
            process.kill()
            process.wait()
            for ring in Path("/dev/shm").glob(f"specmap-{os.getuid()}-{process.pid}-*"):
                ring.unlink()


def tell(process: subprocess.Popen[str], line: str) -> str:
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(f"{line}\n")
    process.stdin.flush()
    return process.stdout.readline().strip()


class Client:
    """A connection to the agent of a process."""

    def __init__(self, toy: Toy, pid: int) -> None:
        self.path = toy.folder / "s" / f"{pid}.sock"
        end = monotonic() + 10
        while not self.path.exists() and monotonic() < end:
            sleep(0.02)
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(str(self.path))
        self.file = self.socket.makefile("rw")

    def ask(self, **request: Any) -> dict[str, Any]:
        self.file.write(f"{json.dumps(request)}\n")
        self.file.flush()
        answer: dict[str, Any] = json.loads(self.file.readline())
        return answer

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()
        self.socket.close()


def test_a_sleeping_agent_leaves_the_code_alone(toy: Toy) -> None:
    with asleep(toy) as process, Client(toy, process.pid) as client:
        assert tell(process, "same") == "True"
        status = client.ask(do="status")
        assert (status["ok"], status["armed"], status["pid"]) == (True, False, process.pid)
    assert [path.name for path in toy.run.iterdir()] == ["plan.json"]


def test_armed_and_disarmed_while_it_runs(toy: Toy) -> None:
    with asleep(toy) as process:
        assert tell(process, "cycle 3") == "-3"
        with Client(toy, process.pid) as client:
            asked = {"do": "arm", "dir": str(toy.run), "plan": str(toy.run / "plan.json")}
            armed = client.ask(**asked)
            assert armed == {"ok": True, "rank": f"rank-1-0-0-{process.pid}"}
            assert tell(process, "same") == "False"
            assert [tell(process, f"cycle {size}") for size in (1, 3)] == ["1", "-3"]
            status = client.ask(do="status")
            assert (status["armed"], status["rank"]) == (True, armed["rank"])
            assert status["package"] == str(toy.folder / "src" / "toy")
            again = client.ask(**asked)
            assert again["ok"] is False and "armed already" in again["error"]
            assert client.ask(do="disarm") == {"ok": True}
            assert toy.header()["finished"] is True
            assert tell(process, "same") == "True"
            assert tell(process, "cycle 3") == "-3"
    kinds = [one.kind for one in toy.records()]
    assert (kinds[0], kinds[-1], kinds.count(REASON)) == (ARM, DISARM, 1)
    assert toy.counts()[1, ENTER] == 2
    assert toy.header()["armed_from_start"] is False


def test_a_client_that_goes_takes_its_trace_along(toy: Toy) -> None:
    with asleep(toy) as process:
        with Client(toy, process.pid) as client:
            client.ask(do="arm", dir=str(toy.run), plan=str(toy.run / "plan.json"))
            assert tell(process, "cycle 1") == "1"
        with Client(toy, process.pid) as second:
            end = monotonic() + 10
            while second.ask(do="status")["armed"] and monotonic() < end:
                sleep(0.02)
            assert toy.header()["finished"] is True
            assert second.ask(do="arm", dir=str(toy.run), plan=str(toy.run / "plan.json"))["ok"]
            assert tell(process, "cycle 2") == "2"
            assert second.ask(do="disarm")["ok"]
    names = [path.name for path in toy.spools()]
    assert names == [f"rank-1-0-0-{process.pid}-2.spool", f"rank-1-0-0-{process.pid}.spool"]


@pytest.mark.parametrize(
    ("request_text", "error"),
    [("{}", "unknown request"), ("nonsense", "JSONDecodeError"), ("[]", "AttributeError"),
     ('{"do": "arm", "dir": "/nowhere"}', "No such file")],
)  # fmt: skip
def test_a_wrong_request_is_answered(plain_toy: Toy, request_text: str, error: str) -> None:
    with asleep(plain_toy) as process, Client(plain_toy, process.pid) as client:
        client.file.write(f"{request_text}\n")
        client.file.flush()
        answer = json.loads(client.file.readline())
        assert answer["ok"] is False and error in answer["error"]
        assert tell(process, "cycle 2") == "2"


def test_only_the_same_user_gets_in(plain_toy: Toy) -> None:
    with asleep(plain_toy) as process, Client(plain_toy, process.pid) as client:
        assert stat.S_IMODE(client.path.stat().st_mode) == 0o600
        assert stat.S_IMODE(client.path.parent.stat().st_mode) == 0o700


def test_a_trace_from_the_start_can_be_ended_over_the_socket(toy: Toy) -> None:
    with asleep(toy, SPECMAP_TRACE="1") as process:
        assert tell(process, "cycle 1") == "1"
        with Client(toy, process.pid) as client:
            assert client.ask(do="disarm") == {"ok": True}
            assert toy.header()["finished"] is True


def test_an_agent_is_woken_in_a_process_that_started_without_one(toy: Toy) -> None:
    wake = Path(AGENT / "wake.py")
    with toy.start(f"""
        import os, runpy, sys
        from toy.worker import Batch, Worker
        assert "specmap_agent" not in sys.modules
        os.environ["SPECMAP_TRACE"] = "dormant"
        runpy.run_path({str(wake)!r})
        worker = Worker()
        print("ready", flush=True)
        for line in sys.stdin:
            print(worker.cycle(Batch(1)), flush=True)
    """, SPECMAP_TRACE="") as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        with Client(toy, process.pid) as client:
            assert client.ask(do="arm", dir=str(toy.run), plan=str(toy.run / "plan.json"))["ok"]
            assert tell(process, "go") == "1"
            assert client.ask(do="disarm")["ok"]
        process.kill()
    assert toy.counts()[1, ENTER] == 1


def test_sockets_of_killed_processes_go_those_of_others_stay(toy: Toy) -> None:
    folder = toy.folder / "s"
    folder.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(folder / "1.sock"))
    (folder / "2.sock").write_text("no socket", "utf-8")
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(folder / "3.sock"))
        other.listen()
        with asleep(toy) as process, Client(toy, process.pid):
            names = {path.name for path in folder.iterdir()}
    assert names == {"3.sock", "2.sock", f"{process.pid}.sock"}


def test_a_rank_that_is_armed_late_says_which_it_is(toy: Toy) -> None:
    """The way of containers: the sleeping agent has no plan, so it did not watch for the start."""
    toy.write("toy/start.py", """
        import sys
        from toy.worker import Batch, Worker
        def serve(server_args, tp_rank, pp_rank, rest=()):
            worker = Worker()
            print("ready", flush=True)
            for line in sys.stdin:
                print(worker.cycle(Batch(1)), flush=True)
    """)  # fmt: skip
    names = {"tp_rank": ["tp_rank"], "pp_rank": ["pp_rank"], "arguments": ["server_args"]}
    toy.extra["rank"] = {"process": ["toy.start:serve"], "names": names}
    script = """
        import types
        import toy.start
        def outer(*args, **kwargs):
            toy.start.serve(*args, **kwargs)
        outer(types.SimpleNamespace(tp_size=4), tp_rank=3, pp_rank=1)
    """
    nowhere = {"SPECMAP_TRACE": "dormant", "SPECMAP_DIR": "", "SPECMAP_PLAN": ""}
    with toy.start(script, **nowhere) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        with Client(toy, process.pid) as client:
            armed = client.ask(do="arm", dir=str(toy.run), plan=str(toy.run / "plan.json"))
            assert armed == {"ok": True, "rank": f"rank-3-1-0-{process.pid}"}
            assert tell(process, "go") == "1"
            assert client.ask(do="disarm")["ok"]
        process.kill()
    header = toy.header()
    assert (header["tp_rank"], header["pp_rank"]) == (3, 1)
    assert header["arguments"] == {"tp_size": 4}
