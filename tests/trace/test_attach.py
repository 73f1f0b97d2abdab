"""The client alone, against a process that answers as the agent's protocol says."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import pytest

from specmap.errors import SpecmapError
from specmap.live import disarm
from specmap.trace.attach import Agent, listening, processes_of, ranks_of

LISTENER = """
import json, os, socket, sys
path = f"{os.environ['SPECMAP_SOCKETS']}/{os.getpid()}.sock"
server = socket.socket(socket.AF_UNIX)
server.bind(path + ".new")
server.listen()
os.replace(path + ".new", path)
print("up", flush=True)
answers = {"status": {"ok": True, "pid": os.getpid(), "armed": False},
           "arm": {"ok": False, "error": "process 77 traces already"}, "odd": [1]}
while True:
    client = server.accept()[0]
    with client, client.makefile("rw") as lines:
        for line in lines:
            asked = json.loads(line)
            if asked["do"] == "go":
                break
            answer = json.dumps(answers[asked["do"]])
            lines.write(answer[:5])
            lines.flush()
            lines.write(answer[5:] + "\\n")
            lines.flush()
"""
PARENT = "import subprocess, sys\nsubprocess.run([sys.executable, '-c', sys.argv[1]])"


@contextmanager
def server(sockets: Path, code: str = LISTENER) -> Iterator[int]:
    """Run a parent whose child runs ``code``; give the parent's pid."""
    environment = {**os.environ, "SPECMAP_SOCKETS": str(sockets)}
    process = subprocess.Popen(
        [sys.executable, "-c", PARENT, code],
        env=environment, stdout=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        yield process.pid
    finally:
        os.killpg(process.pid, 9)
        process.communicate()


def test_the_children_of_a_process_are_found(tmp_path: Path) -> None:
    with server(tmp_path, "import time\nprint('up', flush=True)\ntime.sleep(60)") as pid:
        parent, child = processes_of(pid)
        assert parent.pid == pid
        assert "time.sleep(60)" in child.title
        assert child.pid in {process.pid for process in processes_of(os.getpid())}


def test_ranks_are_the_processes_that_listen(tmp_path: Path) -> None:
    with server(tmp_path) as pid:
        (rank,) = ranks_of(pid, "scheduler")
        assert rank != pid
        assert listening(pid) == (rank,)
        agent = Agent(rank)
        answer = agent.ask("status")
        assert answer == {"ok": True, "pid": rank, "armed": False}
        assert agent.ask("status") == answer
        agent.close()


def test_a_refusal_is_the_agents_own_line(tmp_path: Path) -> None:
    with server(tmp_path) as pid:
        (rank,) = ranks_of(pid, "scheduler")
        agent = Agent(rank)
        with pytest.raises(SpecmapError, match=r"refuses 'arm': process 77 traces already$"):
            agent.ask("arm", dir="/x")
        with pytest.raises(SpecmapError, match="refuses 'odd'"):
            agent.ask("odd")
        with pytest.raises(SpecmapError, match=f"agent of process {rank} is gone: it closed"):
            agent.ask("go")
        agent.close()


def test_a_server_without_agents_is_one_line(tmp_path: Path) -> None:
    with server(tmp_path, "import time\nprint('up', flush=True)\ntime.sleep(61)") as pid:
        with pytest.raises(SpecmapError, match=r"^no agent listens .* --dormant") as failed:
            ranks_of(pid, "time.sleep(61)")
        assert listening(pid) == ()
        parent, child = processes_of(pid)
        named = ", ".join(f"{one.pid} ({one.title[:40]})" for one in (parent, child))
        assert f"ranks without one: {named}; start the server" in str(failed.value)


def test_a_process_that_is_gone(tmp_path: Path) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    assert listening(gone.pid) == ()
    with pytest.raises(SpecmapError, match=f"^no process {gone.pid}$"):
        ranks_of(gone.pid, "scheduler")
    with pytest.raises(SpecmapError, match=f"^process {gone.pid}: No such file"):
        Agent(gone.pid)


def test_a_title_that_overwrote_the_environment_hides_no_socket(tmp_path: Path) -> None:
    """``setproctitle``, which SGLang's ranks call, writes the title over the environment."""
    wipe = (
        "import ctypes, re\n"
        "start = int(open('/proc/self/stat').read().rpartition(')')[2].split()[47])\n"
        "end = int(open('/proc/self/stat').read().rpartition(')')[2].split()[48])\n"
        "ctypes.memset(start, 0, end - start)\n"
    )
    with server(tmp_path, LISTENER.replace('print("up"', wipe + 'print("up"')) as pid:
        (rank,) = ranks_of(pid, "scheduler")
        assert b"SPECMAP_SOCKETS" not in Path(f"/proc/{rank}/environ").read_bytes()
        with closing(Agent(rank)) as agent:
            assert agent.ask("status")["pid"] == rank


def test_another_users_socket_is_not_spoken_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with server(tmp_path) as pid:
        (rank,) = ranks_of(pid, "scheduler")
        monkeypatch.setattr(os, "getuid", lambda: 4711)
        with pytest.raises(SpecmapError, match=f"socket of process {rank} belongs to user "):
            Agent(rank)


def test_ranks_that_refuse_alike_are_one_line_with_their_processes(tmp_path: Path) -> None:
    refusing = LISTENER.replace('"odd"', '"disarm": {"ok": False, "error": "broken"}, "odd"')
    other = refusing.replace("broken", "stuck")
    with ExitStack() as stack:
        every = [stack.enter_context(server(tmp_path, c)) for c in (refusing, other, refusing)]
        ranks = [rank for pid in every for rank in listening(pid)]
        lines = disarm(ranks)
    assert lines == (
        f"the agent of process {ranks[0]} refuses 'disarm': broken; so it is with {ranks[2]}",
        f"the agent of process {ranks[1]} refuses 'disarm': stuck",
    )
