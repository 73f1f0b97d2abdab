"""Logs of many ranks, made from a recorded run of two ranks on two H200.

Every rank repeats the recorded cycles of one of the two, prefill and all, with its times moved.
From some cycle on the target's verify of one rank is eager: those records are from another
recorded run of the same release, where the batch was above the largest captured graph.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from specmap.trace.spool import RECORD, Kind, Record, Records
from tests.trace.recorded import DATA
from tests.trace.spools import FILE_HEAD

ENTRY, VERIFY = "EAGLEWorkerV2.forward_batch_generation", "EAGLEWorkerV2.verify"
_NAMES_FROM = 100
_HOST_RANKS = 4
_HOST_OFFSET_NS = 7 * 3600 * 10**9


@dataclass(frozen=True, slots=True)
class Flaws:
    """What is wrong with which rank, each ``(rank, cycle)``; None: nothing.

    ``eager``: from this cycle on its verify is eager. ``dropped``: its ring overran in this
    cycle and lost the records up to the middle of the third one after it. ``dead``: it was
    killed in this cycle, in the middle of a record.
    """

    eager: tuple[int, int] | None = None
    dropped: tuple[int, int] | None = None
    dead: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Loop:
    """Recorded cycles as bytes, to be repeated; ``starts`` are the offsets of each in ``data``.

    ``begins_ns`` are the times at which they begin, and the end of the last.
    """

    data: bytes
    starts: Sequence[int]
    begins_ns: Sequence[int]

    def __len__(self) -> int:
        return len(self.begins_ns) - 1

    def length_ns(self, first: int, end: int) -> int:
        """Return how long the cycles ``first`` to ``end`` of a run take, which repeats the loop."""
        ends = [
            cycle // len(self) * self.begins_ns[-1] + self.begins_ns[cycle % len(self)]
            for cycle in (first, end)
        ]
        return ends[1] - ends[0]

    def cut(self, first: int, end: int, at_ns: int) -> bytes:
        """Return the cycles ``first`` to ``end`` of the loop, the first at ``at_ns``."""
        part = self.data[self.starts[first] : self.starts[end]]
        # One long number: the time is the lowest word of every record, and nothing carries over.
        lanes = int.from_bytes((b"\1" + b"\0" * (RECORD.size - 1)) * (len(part) // RECORD.size),
                               "little")  # fmt: skip
        moved = int.from_bytes(part, "little") + (at_ns - self.begins_ns[first]) * lanes
        return moved.to_bytes(len(part), "little")


def recorded(name: str) -> dict[str, Any]:
    """Return a recorded run of the tests."""
    data: dict[str, Any] = json.loads((DATA / f"{name}.json").read_text("utf-8"))
    return data


def records_of(spool: str) -> list[Record]:
    """Return the records of a recorded rank."""
    return list(Records(zlib.decompress(base64.b64decode(spool))))


class Maker:
    """Writes ranks; the same arguments give the same bytes."""

    def __init__(self) -> None:
        self._run, other = recorded("tp2-v2"), recorded("v2-max-bs-2")
        ids = {t["qualname"]: t["id"] for t in self._run["plan"]["targets"]}
        self._entry, self._verify = ids[ENTRY], ids[VERIFY]
        cycles = [self._cycles(records_of(rank["spool"])) for rank in self._run["ranks"]]
        count = min(map(len, cycles)) - 1
        slots = [max(some[i + 1][0][0] - some[i][0][0] for some in cycles) for i in range(count)]
        eager = self._eager(self._cycles(records_of(other["spool"])))
        self._names = [n | {"id": n["id"] + _NAMES_FROM} for n in other["names"]]
        self._healthy = [_loop(some[:count], slots) for some in cycles]
        # Where one rank launches its kernels one by one, all need as long as it does.
        longer = [slot + eager[-1][0] for slot in slots]
        slow = [[self._swapped(c, eager) for c in some[:count]] for some in cycles]
        self._waiting = [_loop(some[:count], longer) for some in cycles]
        self._slow = [_loop(some, longer) for some in slow]

    def _cycles(self, records: Sequence[Record]) -> list[list[Record]]:
        """Split records at every start of a cycle."""
        starts = [
            i for i, r in enumerate(records) if r[1] == self._entry and r[2] == Kind.ENTER
        ]  # fmt: skip
        return [list(records[a:b]) for a, b in pairwise(starts)]

    def _inside(self, cycle: Sequence[Record]) -> tuple[int, int]:
        """Return where the verify method begins and ends; -1 in a prefill."""
        at = [i for i, r in enumerate(cycle) if r[1] == self._verify]
        return (at[0], at[-1]) if at else (-1, -1)

    def _length(self, cycle: Sequence[Record]) -> int:
        first, last = self._inside(cycle)
        return cycle[last][0] - cycle[first][0]

    def _eager(self, cycles: Sequence[Sequence[Record]]) -> list[Record]:
        """Return the records of an eager verify of middle length, times from its start."""
        found = [c for c in cycles if any(r[2] == Kind.REASON for r in c[slice(*self._inside(c))])]
        found.sort(key=self._length)
        cycle = found[len(found) // 2]
        first, last = self._inside(cycle)
        start = cycle[first][0]
        return [
            (t - start, target, kind, mode, size,
             value + _NAMES_FROM if kind == Kind.REASON else value, place)
            for t, target, kind, mode, size, value, place in cycle[first : last + 1]
        ]  # fmt: skip

    def _swapped(self, cycle: list[Record], eager: Sequence[Record]) -> list[Record]:
        """Return a cycle with an eager verify in the place of its own."""
        first, last = self._inside(cycle)
        if first < 0:
            return cycle
        start, later = cycle[first][0], eager[-1][0] - (cycle[last][0] - cycle[first][0])
        return [
            *cycle[:first],
            *((start + r[0], *r[1:]) for r in eager),
            *((r[0] + max(later, 0), *r[1:]) for r in cycle[last + 1 :]),
        ]

    def decodes(self, first: int, end: int) -> int:
        """Return how many of these cycles have a verify pass."""
        kinds = [self._verify_in(i) for i in range(len(self._healthy[0]))]
        loops = [
            sum(kinds) * (n // len(kinds)) + sum(kinds[: n % len(kinds)]) for n in (first, end)
        ]
        return loops[1] - loops[0]

    def _verify_in(self, number: int) -> bool:
        loop = self._healthy[0]
        cycle = Records(loop.data[loop.starts[number] : loop.starts[number + 1]])
        return self._inside(list(cycle))[0] >= 0

    def write(self, folder: Path, ranks: int, cycles: int, flaws: Flaws) -> None:
        """Write a run of ``ranks`` ranks of ``cycles`` cycles into a folder."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "plan.json").write_text(json.dumps(self._run["plan"]), "utf-8")
        for rank in range(ranks):
            self._write_rank(folder, rank, ranks, cycles, flaws)

    def _write_rank(self, folder: Path, rank: int, ranks: int, cycles: int, flaws: Flaws) -> None:
        like = self._run["ranks"][rank % 2]
        dead = flaws.dead is not None and flaws.dead[0] == rank
        host = rank // _HOST_RANKS
        header = like["header"] | {
            "pid": 100_000_000 + rank, "tp_rank": rank, "gpu_id": rank % 8,
            "host": f"host-{host}", "boot_id": f"boot-{host}", "finished": not dead,
            "arguments": like["header"]["arguments"] | {"tp_size": ranks},
        }  # fmt: skip
        name = f"rank-{rank}-0-0-{rank + 1}"
        (folder / f"{name}.json").write_text(json.dumps(header), "utf-8")
        lines = "".join(json.dumps(item) + "\n" for item in (*like["names"], *self._names))
        (folder / f"{name}.names").write_text(lines, "utf-8")
        with (folder / f"{name}.spool").open("wb") as file:
            file.write(FILE_HEAD)
            for part in self._parts(rank, cycles, flaws, host * _HOST_OFFSET_NS + 10**9):
                file.write(part)
                last_ns = int.from_bytes(part[-RECORD.size :][:8], "little")
            if not dead:
                file.write(RECORD.pack(last_ns, 0, Kind.DISARM, -1, -1, -1, 0))

    def _parts(self, rank: int, cycles: int, flaws: Flaws, at_ns: int) -> Iterator[bytes]:
        eager_rank, eager_from = flaws.eager or (-1, cycles)
        gone = flaws.dead[1] if flaws.dead is not None and flaws.dead[0] == rank else None
        lost = flaws.dropped[1] if flaws.dropped is not None and flaws.dropped[0] == rank else None
        stops = sorted({0, min(eager_from, cycles), cycles} | {n for n in (gone, lost) if n})
        for first, end in pairwise(stops):
            if gone == first:
                yield self._healthy[rank % 2].cut(0, 1, at_ns)[: RECORD.size * 3 + 5]
                return
            loops = self._healthy if first < eager_from else self._waiting
            loop = (self._slow if rank == eager_rank and first >= eager_from else loops)[rank % 2]
            hole = min(first + 4, end) if lost == first else first
            if hole > first:
                yield _holed(b"".join(_repeated(loop, first, hole, at_ns)))
            yield from _repeated(loop, hole, end, at_ns + loop.length_ns(first, hole))
            at_ns += loop.length_ns(first, end)


def _loop(cycles: Sequence[Sequence[Record]], slots: Sequence[int]) -> Loop:
    """Return cycles one after the other, each in its slot of time."""
    begins = [0]
    for slot in slots:
        begins.append(begins[-1] + slot)
    moved = [
        [(begin + r[0] - cycle[0][0], *r[1:]) for r in cycle]
        for cycle, begin in zip(cycles, begins, strict=False)
    ]
    starts = [0]
    for cycle in moved:
        starts.append(starts[-1] + len(cycle) * RECORD.size)
    return Loop(b"".join(RECORD.pack(*r) for cycle in moved for r in cycle), starts, begins)


def _repeated(loop: Loop, first: int, end: int, at_ns: int) -> Iterator[bytes]:
    """Yield the cycles ``first`` to ``end`` of a run in parts; the first begins at ``at_ns``."""
    start = first
    while first < end:
        place = first % len(loop)
        count = min(len(loop) - place, end - first)
        yield loop.cut(place, place + count, at_ns + loop.length_ns(start, first))
        first += count


def _holed(data: bytes) -> bytes:
    """Return records without their middle, and with a mark that says how many were lost."""
    records = len(data) // RECORD.size
    first, end = records // 8, records - records // 8
    time_ns = RECORD.unpack_from(data, (first - 1) * RECORD.size)[0]
    mark = RECORD.pack(time_ns, 0, Kind.DROPS, -1, -1, end - first, 0)
    return data[: first * RECORD.size] + mark + data[end * RECORD.size :]
