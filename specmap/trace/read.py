"""Reads a run: while it is recorded, or afterwards."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from specmap.codemap.event import Pass, RankRun, Run
from specmap.errors import TraceError
from specmap.trace.cycles import Cycle
from specmap.trace.divergence import Member, Ranks
from specmap.trace.eventlog import tail_of
from specmap.trace.findings import findings_of
from specmap.trace.header import Header
from specmap.trace.names import TraceNames
from specmap.trace.passes import Machine
from specmap.trace.plan import WrapPlan, from_json
from specmap.trace.spool import Record, rank_order, ranks_in, salvage
from specmap.trace.summary import Summary

PLAN = "plan.json"
ABOUT = "run.json"


def load_plan(folder: Path) -> WrapPlan:
    """Return the plan that a run was recorded with.

    Raises:
        TraceError: there is none, or it cannot be read.
    """
    try:
        text = (folder / PLAN).read_bytes()
    except FileNotFoundError:
        raise TraceError(
            f"{str(folder)!r} is no run: it has no {PLAN}; name the folder that the trace wrote"
        ) from None
    except OSError as error:
        raise TraceError(f"{str(folder / PLAN)!r}: {error.strerror or error}") from None
    return from_json(text, PLAN)


def about(folder: Path) -> Mapping[str, Any]:
    """Return what ``run.json`` says about a run; nothing where it is missing or broken."""
    try:
        data = json.loads((folder / ABOUT).read_bytes())
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}


class RankReader:
    """Reads one rank, as far as it has written."""

    def __init__(self, folder: Path, name: str, plan: WrapPlan, names: TraceNames) -> None:
        self.tail = tail_of(folder, name)
        self.summary = Summary(plan, names)

    def poll(self) -> None:
        """Read all that is new.

        Raises:
            TraceError: the spool cannot be read.
        """
        while records := self.tail.poll():
            self.summary.take(self.tail, records)

    def rank_run(self) -> RankRun:
        """Return what the rank did so far."""
        return self.summary.rank_run(self.tail)

    def member(self) -> Member:
        """Return the rank for a comparison with others."""
        header = self.tail.header
        return Member(
            self.rank_run(),
            self.summary,
            Header(header).text("boot_id"),
            header.get("armed_from_start") is not False,
        )


class LiveRun:
    """A run that is being recorded; ranks may appear at any time."""

    def __init__(self, folder: Path, plan: WrapPlan, names: TraceNames) -> None:
        self._folder = folder
        self._plan = plan
        self._names = names
        self._ranks: dict[str, RankReader] = {}

    def advance(self) -> tuple[RankRun, ...]:
        """Read all that is new and return the ranks so far; nothing is compared.

        Raises:
            TraceError: a file cannot be read.
        """
        for name in ranks_in(self._folder):
            if name not in self._ranks:
                self._ranks[name] = RankReader(self._folder, name, self._plan, self._names)
        for reader in self._ranks.values():
            reader.poll()
        runs = (self._ranks[name].rank_run() for name in sorted(self._ranks, key=rank_order))
        return tuple(run for run in runs if _is_rank(run))

    def poll(self) -> Run:
        """Read all that is new and return the run so far.

        Raises:
            TraceError: a file cannot be read.
        """
        self.advance()
        return self._run()

    def _run(self) -> Run:
        every = [self._ranks[name].member() for name in sorted(self._ranks, key=rank_order)]
        members = [m for m in every if _is_rank(m.rank)]
        arguments = members[0].rank.arguments if members else {}
        inside = any(arguments.get(name) is True for name in self._names.replicas_inside)
        expected = _expected(arguments, self._names, inside)
        command = about(self._folder).get("command")
        return Run(
            release=self._plan.release,
            command=tuple(map(str, command)) if isinstance(command, list) else (),
            ranks=tuple(member.rank for member in members),
            findings=findings_of(members, self._plan, Ranks(expected, inside)),
            ranks_expected=expected,
        )


def _is_rank(run: RankRun) -> bool:
    """Tell a rank from a process that only imports the scheduler, such as the launcher."""
    return run.tp_rank >= 0 or run.cycles > 0


def _expected(
    arguments: Mapping[str, object], names: TraceNames, replicas_inside: bool
) -> int | None:
    """Return how many ranks there are by the launch arguments, None where they do not say."""
    count = 1
    for setting in (*names.parallel, *(() if replicas_inside else names.replicas)):
        value = arguments.get(setting, 1 if setting in names.replicas else None)
        if not isinstance(value, int):
            return None
        count *= value
    return count


def read_run(folder: Path, names: TraceNames) -> Run:
    """Read a recorded run to its end; what a killed rank left in memory is saved first.

    Raises:
        TraceError: it is no run, or a file cannot be read.
    """
    plan = load_plan(folder)
    for name in ranks_in(folder):
        salvage(folder, name)
    return LiveRun(folder, plan, names).poll()


def passes_of(folder: Path, name: str, plan: WrapPlan, names: TraceNames) -> Iterator[Pass]:
    """Yield the passes of a recorded rank in order.

    Raises:
        TraceError: the spool cannot be read.
    """
    tail, summary = tail_of(folder, name), Summary(plan, names)
    while records := tail.poll():
        yield from summary.feed(tail, records)
    yield from summary.finish(tail)


def cycles_of(folder: Path, name: str, plan: WrapPlan, names: TraceNames) -> Iterator[Cycle]:
    """Yield the cycles of a recorded rank in order.

    Raises:
        TraceError: the spool cannot be read.
    """
    tail, machine = tail_of(folder, name), Machine(plan, names.idle_modes)
    while records := tail.poll():
        machine.feed(records, tail.header)
        yield from machine.settled()
    yield from machine.settled(final=True)


def records_of(folder: Path, name: str) -> Iterator[Record]:
    """Yield the raw records of a rank.

    Raises:
        TraceError: the spool cannot be read.
    """
    tail = tail_of(folder, name)
    while records := tail.poll():
        yield from records
