"""A run in the Trace Event Format of Chrome, which Perfetto opens too."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from specmap.report.run_timeline import Lane

_NS_IN_US = 1000


def render_chrome(lanes: Iterable[Lane]) -> Iterator[bytes]:
    """Yield the JSON text, one event a line; times are in microseconds, as the format has it."""
    yield b'{"displayTimeUnit":"ns","traceEvents":[\n'
    separator = b""
    for event in _events(lanes):
        yield separator + json.dumps(event, separators=(",", ":")).encode()
        separator = b",\n"
    yield b"\n]}\n"


def _events(lanes: Iterable[Lane]) -> Iterator[dict[str, object]]:
    named: set[int] = set()
    for lane in lanes:
        place: dict[str, object] = {"pid": lane.pid, "tid": lane.tid}
        if lane.pid not in named:
            named.add(lane.pid)
            yield {"ph": "M", "name": "process_name", **place, "args": {"name": lane.process}}
        yield {"ph": "M", "name": "thread_name", **place, "args": {"name": lane.name}}
        for one in lane.slices:
            yield {
                "ph": "X",
                "name": one.name,
                "cat": one.category,
                "ts": one.start_ns / _NS_IN_US,
                "dur": one.duration_ns / _NS_IN_US,
                **place,
                "args": dict(one.values),
            }
