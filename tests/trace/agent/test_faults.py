"""Whatever happens to the agent, the traced program goes on with its own results."""

from __future__ import annotations

import os
import signal
import struct
from pathlib import Path

import pytest

from specmap.trace.spool import Tail, salvage
from tests.trace.agent.toy import ENTER, EXIT, Record, Toy

# The second hundred begins when the agent has taken its wrappers away.
ROUNDS = """
    import time
    from toy.worker import Batch, Worker
    worker, batch = Worker(), Batch(1)
    print(sum(worker.cycle(batch) for _ in range(100)))
    end = time.monotonic() + 20
    while hasattr(Worker.cycle, "__wrapped__") and time.monotonic() < end:
        time.sleep(0.02)
    print(sum(worker.cycle(batch) for _ in range(100)))
"""
RIGHT = "100\n100\n"


def test_a_full_disk_ends_the_trace_with_one_line(toy: Toy) -> None:
    """A limit of 1,000 bytes a file stands in for a full disk; 100 cycles need 19,200."""
    done = toy.trace(
        "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))"
        + ROUNDS.replace("\n    ", "\n")
    )
    assert done.stdout == RIGHT
    (line,) = done.stderr.splitlines()
    assert line == f"specmap: no trace in {toy.run}: File too large; the server goes on"


def test_an_unwritable_folder_ends_the_trace_with_one_line(toy: Toy) -> None:
    toy.plan()
    done = toy.trace(ROUNDS, SPECMAP_DIR=str(toy.folder / "gone"), SPECMAP_PLAN=str(toy.plan()))
    assert done.stdout == RIGHT
    (line,) = done.stderr.splitlines()
    assert line.endswith("No such file or directory; the server goes on")


@pytest.mark.parametrize("text", ["{", '{"package": "toy"}', '{"package": "toy", "targets": [3]}'])
def test_a_broken_plan_is_one_line(plain_toy: Toy, text: str) -> None:
    path = plain_toy.folder / "plan.json"
    path.write_text(text, "utf-8")
    done = plain_toy.trace(ROUNDS, SPECMAP_PLAN=str(path))
    assert done.stdout == RIGHT
    (line,) = done.stderr.splitlines()
    assert line.startswith("specmap: no trace of process ")


def test_no_plan_at_all_is_one_line(plain_toy: Toy) -> None:
    done = plain_toy.trace(ROUNDS, SPECMAP_PLAN="/nowhere/plan.json")
    assert done.stdout == RIGHT
    assert done.stderr.count("\n") == 1


def test_a_killed_rank_leaves_every_record(toy: Toy) -> None:
    """What the spool has not got yet lies in shared memory, between tail and head."""
    with toy.start("""
        import glob, os, signal, time
        from toy.worker import Batch, Worker
        worker, batch = Worker(), Batch(1)
        worker.cycle(batch)
        while not glob.glob(os.environ["SPECMAP_DIR"] + "/rank-*.json"):
            time.sleep(0.02)
        for _ in range(50):
            worker.cycle(batch)
        os.kill(os.getpid(), signal.SIGKILL)
    """) as process:
        assert process.wait(30) == -signal.SIGKILL
    header = toy.header()
    assert header["finished"] is False
    ring = Path("/dev/shm") / header["shm"]
    try:
        raw = ring.read_bytes()
    finally:
        ring.unlink()
    magic, version, record_bytes, capacity, pid = struct.unpack_from("<8sIIQQ", raw)
    assert (magic, version, record_bytes, pid) == (b"SPECRING", 1, 32, header["pid"])
    head, tail = (struct.unpack_from("<Q", raw, place)[0] for place in (64, 128))
    kept = toy.records()
    assert len(kept) == tail
    for number in range(tail, head):
        kept.append(Record(*struct.unpack_from("<QIHhiiQ", raw, 4096 + number % capacity * 32)))
    assert sum(1 for one in kept if (one.target, one.kind) == (1, ENTER)) == 51
    assert sum(1 for one in kept if (one.target, one.kind) == (1, EXIT)) == 51


def test_a_forked_child_writes_nothing(toy: Toy) -> None:
    done = toy.trace("""
        import os
        from toy.worker import Batch, Worker
        worker, batch = Worker(), Batch(1)
        worker.cycle(batch)
        child = os.fork()
        if child == 0:
            for _ in range(10):
                worker.cycle(batch)
            os._exit(0)
        os.waitpid(child, 0)
        worker.cycle(batch)
        print("good")
    """)
    assert done.stdout == "good\n"
    assert toy.counts()[1, EXIT] == 2
    assert toy.header()["finished"] is True


def test_a_fault_of_the_agent_stops_only_the_agent(plain_toy: Toy) -> None:
    done = plain_toy.trace("""
        from toy.worker import Batch, Worker
        import sys
        worker, batch = Worker(), Batch(1)
        worker.cycle(batch)
        ring = sys.modules["specmap_agent.ring"].PythonRing
        def broken(*args):
            raise RuntimeError("broken")
        ring._append = broken
        print([worker.cycle(batch) for _ in range(3)])
    """)
    assert done.stdout == "[1, 1, 1]\n"
    assert "recording stopped" in done.stderr.splitlines()[0]
    told = [one["text"] for one in plain_toy.names("fault")]
    assert told[0].endswith("RuntimeError: broken")


def test_a_log_that_the_agent_gave_up_says_so_and_its_rank_was_not_killed(toy: Toy) -> None:
    done = toy.trace("""
        import glob, os, sys, time
        from toy.worker import Batch, Worker
        worker, batch = Worker(), Batch(1)
        worker.cycle(batch)
        while not glob.glob(os.environ["SPECMAP_DIR"] + "/rank-*.json"):
            time.sleep(0.02)
        def broken(*args):
            raise RuntimeError("broken")
        sys.modules["specmap_agent.log"].Log.drain = broken
        spool, = glob.glob(os.environ["SPECMAP_DIR"] + "/rank-*.spool")
        while open(spool, "rb").read(20)[16:] == bytes(4):
            time.sleep(0.02)
        print([worker.cycle(batch) for _ in range(3)])
    """)
    assert done.stdout == "[1, 1, 1]\n"
    (line,) = done.stderr.splitlines()
    assert line == "specmap: the trace's thread ended: RuntimeError: broken"
    (spool,) = toy.spools()
    salvage(toy.run, spool.stem)
    tail = Tail(toy.run, spool.stem)
    calls = [record[2] for record in tail.poll() if record[1] == 1]
    assert calls.count(ENTER) == calls.count(EXIT) == 4
    assert tail.damage() == [
        f"{spool.name}: the agent failed, as its line among the server's output says; the rank "
        "wrote nothing after that"
    ]


def test_a_dead_collector_ends_the_trace(plain_toy: Toy) -> None:
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    done = plain_toy.trace(ROUNDS, SPECMAP_COLLECTOR=str(child))
    assert done.stdout == RIGHT
    assert done.stderr == f"specmap: the collector (process {child}) is gone; tracing stopped\n"
    assert plain_toy.header()["finished"] is True
    assert plain_toy.counts()[1, ENTER] == 100


def test_shared_memory_is_given_back(toy: Toy) -> None:
    toy.trace("from toy.worker import Batch, Worker\nWorker().cycle(Batch(1))")
    header = toy.header()
    assert header["shm"] is None
    assert not list(Path("/dev/shm").glob(f"specmap-{os.getuid()}-{header['pid']}-*"))
