"""Launches as the tracer counts them, beside those that torch's own profiler sees.

    python launches.py torch              # two loads of torch alone
    python launches.py profiled RUN TRACE # SGLang's profile of an engine: launches of each phase

``SPECMAP_EXTENSION`` names the folder of the C ring. RUN is the folder of a traced engine (its
plan names the phases), TRACE what SGLang's profiler wrote in the same engine, with stacks. On the
GPU machine; standard library and torch.
"""

from __future__ import annotations

import bisect
import gzip
import json
import os
import struct
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

LAUNCHES = 16
KERNEL, GRAPH = ("cudaLaunch", "cuLaunch"), ("cudaGraphLaunch", "cuGraphLaunch")


def kind_of(event: dict[str, Any]) -> str:
    """Return what a runtime or driver call of a profile launches, "" for nothing."""
    name = str(event.get("name", ""))
    if event.get("cat") not in ("cuda_runtime", "cuda_driver") or "HostFunc" in name:
        return ""
    if name.startswith(GRAPH):
        return "graphs"
    return "kernels" if name.startswith(KERNEL) else ""


def events_of(path: Path) -> list[dict[str, Any]]:
    """Return the events of a profile in Chrome's format."""
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as file:
        found: list[dict[str, Any]] = json.load(file)["traceEvents"]
    return found


def outermost(calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the launches that are no part of another: a runtime call makes one of the driver's."""
    kept: list[dict[str, Any]] = []
    for call in sorted(calls, key=lambda c: (c["tid"], c["ts"], -c.get("dur", 0))):
        last = kept[-1] if kept else None
        if last is None or last["tid"] != call["tid"] or call["ts"] >= last["ts"] + last["dur"]:
            kept.append(call)
    return kept


def by_torch(work: Callable[[], object]) -> Counter[str]:
    """Return what a load launches, as torch's profiler sees it."""
    import torch

    with torch.profiler.profile() as profiler:
        work()
        torch.cuda.synchronize()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(place))
        calls = [event for event in events_of(place) if kind_of(event)]
    return Counter(kind_of(call) for call in outermost(calls))


def loads() -> dict[str, Callable[[], object]]:
    """Return loads of torch: one launched kernel by kernel, one as a graph and a copy."""
    import torch

    x, w = torch.randn(64, 64, device="cuda"), torch.randn(64, 64, device="cuda")

    def eager() -> object:
        y = x
        for _ in range(100):
            y = torch.relu(y @ w)
        return y

    def replay() -> object:
        graph.replay()
        return x.add_(1.0)

    eager()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        eager()
    return {"100 x matmul and relu": eager, "a graph of them, and an add": replay}


def alone() -> None:
    """Count two loads, let torch's profiler count them, and try again after it."""
    import torch

    from specmap.trace.agent.launches import Launches
    from specmap.trace.agent.makering import make_ring
    from specmap.trace.agent.memory import Memory
    from specmap.trace.agent.records import HEAD, NOTE, PAGE_BYTES, RECORD

    works, memory = loads(), Memory(1 << 16)
    ring, note = make_ring(os.environ.get("SPECMAP_EXTENSION", ""))
    print("ring", ring.kind, note)
    ring.attach(memory.map, memory.records)
    ring.arm(True, True)
    ring.put(0, NOTE, -1, -1, -1, 0)

    def counted(work: Callable[[], object]) -> tuple[int, ...]:
        ring.put(0, NOTE, -1, -1, -1, 0)
        head = struct.unpack_from("<Q", memory.map, HEAD * 8)[0]
        work()
        torch.cuda.synchronize()
        ring.put(0, NOTE, -1, -1, -1, 0)
        _, _, kind, _, size, value, other = RECORD.unpack_from(
            memory.map, PAGE_BYTES + head % memory.records * RECORD.size
        )
        return (size, value, other) if kind == LAUNCHES else (0, 0, 0)

    for again in (False, True):
        launches = Launches(ring, ("elementwise",))  # relu, and the addition
        launches.start()
        for name, work in works.items():
            ours = counted(work)
            print(f"{name}{' (after a profiler)' if again else ''}: graphs, kernels, named {ours}")
        if not again:
            for name, work in works.items():
                print(f"{name}: torch's profiler {dict(by_torch(work))}")
                print(f"{name}: ours under it {counted(work)}")
        launches.stop()
    memory.unlink()


def spans_of(events: list[dict[str, Any]], plan: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the calls of the plan's phases in a profile, by the names of its Python functions."""
    targets = {target["id"]: target for target in plan["targets"]}
    scopes: dict[tuple[str, str], str] = {}
    for worker in plan["workers"]:
        for phase in worker["phases"]:
            target = targets[phase["scope"]]
            if phase["scope"] != worker["entry"]:
                name = target["qualname"].rpartition(".")[2]
                scopes[target["file"], name] = phase["name"]
    for event in events:
        if event.get("cat") == "python_function":
            file, _, rest = str(event["name"]).partition("(")
            known = scopes.get((file[file.rfind("sglang/") :], rest.partition("): ")[2]))
            if known:
                yield known, event


def collectives_in(events: list[dict[str, Any]], parts: list[str]) -> set[Any]:
    """Return the correlation numbers of the kernels that are collectives, by parts of a name."""
    return {
        event["args"].get("correlation")
        for event in events
        if event.get("cat") == "kernel" and any(part in event["name"] for part in parts)
    }


def profiled(run: Path, trace: Path) -> None:
    """Print how many calls of each phase launched how much, in a profile of SGLang's own.

    Collectives are those among the kernels launched one by one, as the GPU ran them.
    """
    events = events_of(trace)
    plan = json.loads((run / "plan.json").read_text("utf-8"))
    collectives = collectives_in(events, plan["graph"]["collectives"])
    by_thread: dict[Any, list[dict[str, Any]]] = defaultdict(list)
    launches = [event for event in events if kind_of(event)]
    for call in outermost(launches):
        by_thread[call["tid"]].append(call)
    joint = [
        event for event in launches
        if kind_of(event) == "kernels" and event["args"].get("correlation") in collectives
    ]  # fmt: skip
    found: dict[str, Counter[tuple[int, int, int]]] = defaultdict(Counter)
    for phase, span in spans_of(events, plan):
        calls = by_thread[span["tid"]]
        starts = [call["ts"] for call in calls]
        end = span["ts"] + span["dur"]
        first = bisect.bisect_left(starts, span["ts"])
        last = bisect.bisect_left(starts, end)
        kinds = Counter(kind_of(call) for call in calls[first:last])
        numbers = {
            call["args"]["correlation"] for call in joint
            if call["tid"] == span["tid"] and span["ts"] <= call["ts"] < end
        }  # fmt: skip
        found[phase][kinds["graphs"], kinds["kernels"], len(numbers)] += 1
    for phase, counts in sorted(found.items()):
        shown = ", ".join(f"{n} x {key}" for key, n in counts.most_common(6))
        print(f"{run.name} {phase}: graphs, kernels, collectives: {shown}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["torch"]:
        alone()
    else:
        profiled(Path(sys.argv[2]), Path(sys.argv[3]))
