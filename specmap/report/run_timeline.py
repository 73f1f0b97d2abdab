"""Passes and cycles as slices of a timeline, for the formats of trace viewers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from specmap.codemap.event import Pass

Value = int | str


@dataclass(frozen=True, slots=True)
class Slice:
    """Something with a beginning and a duration, both in ns of ``CLOCK_MONOTONIC``."""

    start_ns: int
    duration_ns: int
    name: str
    category: str
    values: tuple[tuple[str, Value], ...] = ()


@dataclass(frozen=True, slots=True)
class Lane:
    """One line of the viewer; ``pid`` and ``tid`` only tell lanes apart."""

    pid: int
    process: str
    tid: int
    name: str
    slices: Iterable[Slice]


@dataclass(frozen=True, slots=True)
class CycleSlice:
    """One call of a worker's entry: its number, begin, duration, and the requests in it."""

    number: int
    start_ns: int
    duration_ns: int
    size: int
    worker: str


@dataclass(frozen=True, slots=True)
class RankTimeline:
    """What one rank did, in order; ``cycles`` and ``passes`` are read once each."""

    name: str
    cycles: Iterable[CycleSlice]
    passes: Iterable[Pass]


def lanes_of(ranks: Iterable[RankTimeline]) -> Iterator[Lane]:
    """Yield two lanes a rank: its cycles, and the passes in them.

    Viewers take threads with one id for one thread, and that of a process for its main one,
    so no two of these numbers are the same.
    """
    for place, rank in enumerate(ranks):
        pid = 1 + 3 * place
        yield Lane(pid, rank.name, pid + 1, "cycles", map(_cycle, rank.cycles))
        yield Lane(pid, rank.name, pid + 2, "passes (CPU time)", map(_pass, rank.passes))


def _cycle(cycle: CycleSlice) -> Slice:
    values: tuple[tuple[str, Value], ...] = (("cycle", cycle.number), ("requests", cycle.size))
    return Slice(
        cycle.start_ns, cycle.duration_ns, f"{cycle.worker} {cycle.number}", "cycle", values
    )


def _pass(one: Pass) -> Slice:
    known: list[tuple[str, Value | None]] = [
        ("cycle", one.cycle),
        ("reason", one.reason or None),
        ("requests", one.size if one.size >= 0 else None),
        ("graph_size", one.graph_size if one.graph_size >= 0 else None),
        ("replays", one.replays),
        ("gpu_ns", one.gpu_ns),
        ("accepted", one.accepted),
    ]
    if one.launches is not None:
        known += [
            ("graph_launches", one.launches.graphs),
            ("kernels", one.launches.kernels),
            ("collectives", one.launches.collectives),
        ]
    values = tuple((name, value) for name, value in known if value is not None)
    name = f"{one.phase} {one.state.value}"
    return Slice(one.start_ns, one.cpu_ns, name, one.state.value, values)
