"""The cycles and passes of a rank as columns, compact enough for a hundred thousand cycles."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from specmap.codemap.event import Pass, State

_ALIGNED = 8
_NS_OF_US = 1000
_TYPES = ((0xFF, "B", "u8"), (0xFFFF, "H", "u16"), (0xFFFFFFFF, "I", "u32"))
_STATES = {state: number for number, state in enumerate(State)}
_CYCLE = ("number", "start", "entry", "size", "passes")
_PASS = (
    "key", "state", "reason", "start", "cpu", "gpu", "size", "graphSize", "replays", "accepted",
)  # fmt: skip
_DELTA = ("number", "start")


@dataclass(slots=True)
class Recording:
    """One rank's cycles and passes; ``Timeline`` in ``app/src/data.ts`` describes the columns.

    Times are in ns here. ``clock`` names the machine and start whose clock was read; starts of
    cycles count from 0 of that clock. ``diverges`` are stretches of cycles in which the ranks of
    a group differ, each its first cycle and how many there are.
    """

    clock: str = ""
    keys: dict[tuple[str, str], int] = field(default_factory=dict)
    reasons: dict[str, int] = field(default_factory=lambda: {"": 0})
    cycle: Mapping[str, array[int]] = field(
        default_factory=lambda: {name: array("q") for name in _CYCLE}
    )
    rows: Mapping[str, array[int]] = field(
        default_factory=lambda: {name: array("q") for name in _PASS}
    )
    diverges: Sequence[tuple[int, int]] = ()

    def add(
        self, number: int, start_ns: int, entry_ns: int, size: int, passes: Sequence[Pass]
    ) -> None:
        """Add a cycle with its passes."""
        row = (number, start_ns, entry_ns, max(size, 0), len(passes))
        for name, value in zip(_CYCLE, row, strict=True):
            self.cycle[name].append(value)
        for one in passes:
            self._add(one, start_ns)

    def _add(self, one: Pass, start_ns: int) -> None:
        rows = self.rows
        rows["key"].append(self.keys.setdefault((one.worker, one.phase), len(self.keys)))
        rows["state"].append(_STATES[one.state])
        rows["reason"].append(self.reasons.setdefault(one.reason, len(self.reasons)))
        rows["start"].append(max(0, one.start_ns - start_ns))
        rows["cpu"].append(one.cpu_ns)
        rows["gpu"].append(0 if one.gpu_ns is None else one.gpu_ns + _NS_OF_US)
        rows["size"].append(one.size + 1)
        rows["graphSize"].append(one.graph_size + 1)
        rows["replays"].append(one.replays)
        rows["accepted"].append(0 if one.accepted is None else one.accepted + 1)


class Columns:
    """The numbers of a page, one column behind the other; :meth:`add` returns where one is."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._end = 0

    def add(self, values: Iterable[int], *, delta: bool = False) -> Mapping[str, Any]:
        """Store a column of numbers, 0 or above, in the narrowest type."""
        listed = list(values)
        if delta and listed:
            listed = [listed[0], *(b - a for a, b in pairwise(listed))]
        code, name = _type(listed)
        column = array(code, listed)
        if sys.byteorder == "big":
            column.byteswap()
        at, data = self._end, column.tobytes()
        padded = data + bytes(-len(data) % _ALIGNED)
        self._parts.append(padded)
        self._end += len(padded)
        return {"at": at, "count": len(listed), "type": name, "delta": delta}

    def content(self) -> bytes:
        """Return all columns."""
        return b"".join(self._parts)


def _type(values: list[int]) -> tuple[str, str]:
    least, most = min(values, default=0), max(values, default=0)
    if least >= 0:
        for limit, code, name in _TYPES:
            if most <= limit:
                return code, name
    return "d", "f64"


def timelines(recordings: Mapping[str, Recording], columns: Columns) -> dict[str, dict[str, Any]]:
    """Return the timeline of each rank; times count from the first cycle on the same clock."""
    first: dict[str, int] = {}
    for rank in recordings.values():
        start = min(rank.cycle["start"], default=0)
        first[rank.clock] = min(first.get(rank.clock, start), start)
    return {n: _timeline(r, first[r.clock], columns) for n, r in sorted(recordings.items())}


def _timeline(rank: Recording, first_ns: int, columns: Columns) -> dict[str, Any]:
    cycle: dict[str, Iterator[int] | array[int]] = dict(rank.cycle)
    cycle["start"] = (_us(start - first_ns) for start in rank.cycle["start"])
    cycle["entry"] = map(_us, rank.cycle["entry"])
    cycle["diverges"] = _marked(rank)
    rows: dict[str, Iterator[int] | array[int]] = dict(rank.rows)
    rows |= {name: map(_us, rank.rows[name]) for name in ("start", "cpu", "gpu")}
    return {
        "cycles": len(rank.cycle["number"]),
        "passes": len(rank.rows["key"]),
        "keys": [{"worker": worker, "phase": phase} for worker, phase in rank.keys],
        "states": [state.value for state in _STATES],
        "reasons": list(rank.reasons),
        "cycle": {n: columns.add(values, delta=n in _DELTA) for n, values in cycle.items()},
        "pass": {n: columns.add(values) for n, values in rows.items()},
    }


def _marked(rank: Recording) -> Iterator[int]:
    """Return 1 for each cycle that is in one of the stretches, which are in order."""
    stretches = iter(sorted(rank.diverges))
    first, count = next(stretches, (0, 0))
    for number in rank.cycle["number"]:
        while count and number >= first + count:
            first, count = next(stretches, (0, 0))
        yield int(count > 0 and number >= first)


def _us(time_ns: int) -> int:
    return (time_ns + _NS_OF_US // 2) // _NS_OF_US
