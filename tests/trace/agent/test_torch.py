"""What is learned from torch, here a stand-in with the same names and a GPU that answers late."""

from __future__ import annotations

import pytest

from tests.trace.agent.toy import (
    ACCEPT,
    CAPTURE_BEGIN,
    CAPTURE_END,
    ENTER,
    EXIT,
    GPU_SPAN,
    REPLAY,
    SYNC,
    Toy,
)

TORCH = '''
    import sys, types
    __version__ = "9.9"
    cuda = types.ModuleType("torch.cuda")
    sys.modules["torch.cuda"] = cuda
    log = []

    class CUDAGraph:
        def capture_begin(self, pool=None):
            pass
        def capture_end(self):
            pass
        def replay(self):
            return "replayed"

    class Event:
        """Ready once two later events have been recorded; asking the time before is an error."""
        recorded = 0
        def __init__(self, enable_timing=False):
            assert enable_timing
        def record(self, stream):
            assert stream == "stream " + str(cuda.raw)
            Event.recorded += 1
            self.at = Event.recorded
        def query(self):
            return Event.recorded >= self.at + 2
        def elapsed_time(self, end):
            assert end.query()
            return 0.25 * (end.at - self.at)
        def synchronize(self):
            log.append("synchronize")

    class Tensor:
        def __init__(self, is_cuda):
            self.is_cuda = is_cuda
        def item(self):
            return 1
        def cpu(self):
            return Tensor(False)
        def to(self, device):
            return Tensor(device == "cuda")

    cuda.CUDAGraph, cuda.Event = CUDAGraph, Event
    cuda.is_initialized = lambda: True
    cuda.get_device_name = lambda: "Toy GPU"
    cuda.current_device = lambda: 3
    cuda.raw, cuda.asked = 7, 0
    class _C:
        _cuda_getCurrentRawStream = staticmethod(lambda device: {3: cuda.raw}[device])
    def current_stream():
        cuda.asked += 1
        return "stream " + str(cuda.raw)
    cuda.current_stream = current_stream
    class Properties:
        total_memory, major, minor = 42 << 30, 9, 0
    cuda.get_device_properties = {3: Properties}.get
'''
GRAPH = {
    "classes": ["torch.cuda:CUDAGraph"], "replay": ["replay"],
    "capture": ["capture_begin", "capture_end"], "size": ["bs"],
}  # fmt: skip


@pytest.fixture
def gpu_toy(toy: Toy) -> Toy:
    toy.write("torch/__init__.py", TORCH)
    toy.extra["graph"] = GRAPH
    return toy


def test_replays_and_captures_are_seen_at_the_graph(gpu_toy: Toy) -> None:
    done = gpu_toy.trace("""
        import torch
        from toy.worker import Batch, Worker
        worker, graph = Worker(), torch.CUDAGraph()
        def replay(batch):
            graph.capture_begin(pool=1); graph.capture_end()
            return graph.replay()
        worker.verify = replay
        print(worker.cycle(Batch(1)), id(graph))
    """)
    result, graph = done.stdout.split()
    assert result == "replayed"
    seen = [one for one in gpu_toy.records() if one.kind in (REPLAY, CAPTURE_BEGIN, CAPTURE_END)]
    assert [one.kind for one in seen] == [CAPTURE_BEGIN, CAPTURE_END, REPLAY]
    assert {one.object for one in seen} == {int(graph)}
    header = gpu_toy.header()
    assert (header["gpu"], header["torch"]) == ("Toy GPU", "9.9")
    assert (header["gpu_memory_bytes"], header["gpu_sm"]) == (42 << 30, 90)


def test_a_graph_class_that_is_replaced_later_is_wrapped_too(gpu_toy: Toy) -> None:
    gpu_toy.trace("""
        import torch
        from toy.worker import Batch, Worker
        class Tape:
            def replay(self):
                return "tape"
        torch.cuda.CUDAGraph = Tape
        worker = Worker()
        worker.verify = lambda batch: torch.cuda.CUDAGraph().replay()
        worker.cycle(Batch(1))
    """)
    assert sum(1 for one in gpu_toy.records() if one.kind == REPLAY) == 1


@pytest.mark.parametrize("every", [8, 1])
def test_gpu_spans_are_read_late_and_never_waited_for(gpu_toy: Toy, every: int) -> None:
    done = gpu_toy.trace(
        """
        import torch
        from toy.worker import Batch, Worker
        worker = Worker()
        for number in range(26):
            torch.cuda.raw = number // 9
            worker.cycle(Batch(1))
        print(torch.log, torch.cuda.asked)
        """,
        SPECMAP_SPANS=str(every),
    )
    assert done.stdout == "[] 3\n"
    spans = [one for one in gpu_toy.records() if one.kind == GPU_SPAN]
    known = range(0, 24, every)  # the last ones are not ready when the process ends
    assert [(one.target, one.value, one.object) for one in spans][: len(known)] == [
        (2, 250_000, number) for number in known
    ]
    assert gpu_toy.header()["spans"] == every


def test_gpu_spans_are_left_out_while_a_graph_is_captured(gpu_toy: Toy) -> None:
    done = gpu_toy.trace(
        """
        import torch
        from toy.worker import Batch, Worker
        worker, graph = Worker(), torch.CUDAGraph()
        graph.capture_begin()
        worker.verify(Batch(1))
        print(torch.Event.recorded)
        graph.capture_end()
        worker.cycle(Batch(1))
        print(torch.Event.recorded)
        """,
        SPECMAP_SPANS="1",
    )
    assert done.stdout == "0\n2\n"


def test_waiting_calls_are_recorded_with_their_place(gpu_toy: Toy) -> None:
    gpu_toy.write(
        "toy/waits.py",
        """
        import torch
        def wait(batch):
            there, here = torch.Tensor(True), torch.Tensor(False)
            for _ in range(2):
                there.item()
            here.item(); there.to("cuda")
            there.cpu(); there.to("cpu")
            torch.cuda.Event(True).synchronize()
        """,
    )
    gpu_toy.trace(
        """
        from toy.worker import Batch, Worker
        from toy.waits import wait
        worker = Worker()
        worker.verify = wait
        worker.cycle(Batch(1))
        """,
        SPECMAP_SYNCS="1",
    )
    waited = [one for one in gpu_toy.records() if one.kind == SYNC]
    sites = {one["id"]: one for one in gpu_toy.names("site")}
    assert [(sites[one.target]["call"], sites[one.target]["line"]) for one in waited] == [
        ("item", 6), ("item", 6), ("cpu", 8), ("to", 8), ("synchronize", 9),
    ]  # fmt: skip
    assert {one["file"] for one in sites.values()} == {"toy/waits.py"}
    assert {one["function"] for one in sites.values()} == {"wait"}
    assert len(sites) == 4


def test_accepted_tokens_are_the_server_s_own_numbers(toy: Toy) -> None:
    toy.write(
        "toy/metrics.py",
        """
        class Metrics:
            def update(self, bs, num_correct):
                return bs
        """,
    )
    toy.extra["accept"] = [
        {"id": 30, "module": "toy.metrics", "qualname": "Metrics.update", "requests": "bs",
         "tokens": ["num_accepted", "num_correct + bs"]},
    ]  # fmt: skip
    done = toy.trace("""
        from toy.metrics import Metrics
        from toy.worker import Batch, Worker
        Worker().cycle(Batch(2))
        metrics = Metrics()
        print(metrics.update(2, num_correct=3), metrics.update(2, None))
    """)
    assert done.stdout == "2 2\n"
    accepted = [one for one in toy.records() if one.kind == ACCEPT]
    assert [(one.target, one.size, one.value) for one in accepted] == [(30, 2, 5), (30, 2, -1)]
    assert toy.counts()[1, ENTER] == toy.counts()[1, EXIT] == 1
