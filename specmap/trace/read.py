"""Reads a run: while it is recorded, or afterwards."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from specmap.codemap.event import Pass, RankRun, Run
from specmap.errors import TraceError
from specmap.trace.cycles import Cycle
from specmap.trace.divergence import Member, Ranks, Unlike, unlike
from specmap.trace.eventlog import tail_of
from specmap.trace.findings import findings_of
from specmap.trace.names import TraceNames
from specmap.trace.passes import Machine
from specmap.trace.plan import WrapPlan, from_json
from specmap.trace.rankreader import Keep, RankReader
from specmap.trace.spool import check_schema, rank_order, ranks_in, salvage
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
    except NotADirectoryError:
        raise TraceError(
            f"{str(folder)!r} is a file, not the folder of a run; a server's log is read by "
            "'specmap scan --args-file'"
        ) from None
    except OSError as error:
        raise TraceError(f"{str(folder / PLAN)!r}: {error.strerror or error}") from None
    return from_json(text, PLAN)


def about(folder: Path) -> Mapping[str, Any]:
    """Return what ``run.json`` says about a run; nothing where it is missing or broken."""
    return _about(folder)[0]


def _about(folder: Path) -> tuple[Mapping[str, Any], str]:
    """Return what ``run.json`` says, and what is wrong with it; a run need not have one."""
    try:
        data = json.loads((folder / ABOUT).read_bytes())
        wrong = _wrong(data)
    except FileNotFoundError:
        return {}, ""
    except (OSError, ValueError) as error:
        wrong = f"{ABOUT}: {getattr(error, 'strerror', None) or 'no JSON'}"
    return ({}, f"{wrong}; command and tree of the run are not known") if wrong else (data, "")


_FACTS = {"command": list, "tree": str, "platform": str}


def _wrong(data: object) -> str:
    """Say what is wrong with a ``run.json``, "" where nothing is."""
    if not isinstance(data, dict):
        return f"{ABOUT}: no JSON object"
    try:
        check_schema(data, ABOUT)
    except TraceError as error:
        return str(error)
    odd = [key for key, kind in _FACTS.items() if not isinstance(data.get(key), kind | None)]
    return f"{ABOUT}: {odd[0]} is {data[odd[0]]!r}" if odd else ""


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
        runs = (reader.rank_run() for reader in self._readable())
        return tuple(run for run in runs if _is_rank(run))

    def cut_short(self) -> bool:
        """Return whether no rank writes any more, though they go on: nothing more will come."""
        return bool(self._ranks) and all(each.tail.cut_short for each in self._ranks.values())

    def _readable(self) -> list[RankReader]:
        """Return the ranks of which something could be read, in order.

        Raises:
            TraceError: there are ranks, and none can be read.
        """
        every = [self._ranks[name] for name in sorted(self._ranks, key=rank_order)]
        found = [reader for reader in every if reader.readable]
        if every and not found:
            raise TraceError("; ".join(reader.failed for reader in every))
        return found

    def poll(self) -> Run:
        """Read all that is new and return the run so far.

        Raises:
            TraceError: a file cannot be read.
        """
        self.advance()
        return self._run(*self._members())

    def read_whole(self, keep: Keep) -> tuple[Run, Unlike]:
        """Read ranks that have ended, and hand on every cycle; see :func:`read_whole`.

        Raises:
            TraceError: a file cannot be read.
        """
        for name in ranks_in(self._folder):
            reader = RankReader(self._folder, name, self._plan, self._names)
            self._ranks[name] = reader
            for cycle, passes in reader.poll_pairs():
                keep(name, cycle, passes)
        members, ranks = self._members()
        return self._run(members, ranks), unlike(members, ranks)

    def _members(self) -> tuple[list[Member], Ranks]:
        every = [reader.member() for reader in self._readable()]
        members = [m for m in every if _is_rank(m.rank)]
        arguments = members[0].rank.arguments if members else {}
        inside = any(arguments.get(name) is True for name in self._names.replicas_inside)
        return members, Ranks(_expected(arguments, self._names, inside), inside)

    def _run(self, members: list[Member], ranks: Ranks) -> Run:
        known, wrong = _about(self._folder)
        command = known.get("command")
        every = [self._ranks[name] for name in sorted(self._ranks, key=rank_order)]
        damage = _damage(every)
        return Run(
            release=self._plan.release,
            command=tuple(map(str, command)) if isinstance(command, list) else (),
            ranks=tuple(member.rank for member in members),
            findings=findings_of(members, self._plan, ranks),
            ranks_expected=ranks.expected,
            damage=(*((wrong,) if wrong else ()), *damage),
        )


def _damage(readers: Iterable[RankReader]) -> list[str]:
    """Return what is wrong with the files; what several ranks' have in common is told once."""
    found: dict[tuple[str, str], list[str]] = {}
    for reader in readers:
        name = reader.tail.name
        for line in reader.damage():
            file, _, what = line.removeprefix(name).partition(": ")
            found.setdefault((file, what), []).append(name if line.startswith(name) else "")
    lines = []
    for (file, what), names in found.items():
        more = f" and those of {len(names) - 1} more ranks" if len(names) > 1 and names[0] else ""
        lines.append(f"{names[0]}{file}{more}: {what}")
    return lines


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

    A rank that cannot be read is left out, and :attr:`Run.damage` says why.

    Raises:
        TraceError: it is no run, or no rank of it can be read.
    """
    plan = load_plan(folder)
    for name in ranks_in(folder):
        salvage(folder, name)
    return LiveRun(folder, plan, names).poll()


def read_whole(folder: Path, names: TraceNames, keep: Keep) -> tuple[Run, Unlike]:
    """Read a recorded run once, for its figures and for every cycle of it.

    ``keep`` gets the rank's name, the cycle, and its passes in order. Also returned are the
    cycles of each rank in which its group did not do the same.

    Raises:
        TraceError: it is no run, or a file cannot be read.
    """
    plan = load_plan(folder)
    for name in ranks_in(folder):
        salvage(folder, name)
    return LiveRun(folder, plan, names).read_whole(keep)


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
