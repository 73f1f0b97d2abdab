"""Reads one rank of a run: its records summed up, and what is wrong with its files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from specmap.codemap.event import Pass, RankRun
from specmap.errors import TraceError
from specmap.trace.cycles import Cycle
from specmap.trace.divergence import Member
from specmap.trace.eventlog import tail_of
from specmap.trace.header import Header
from specmap.trace.names import TraceNames
from specmap.trace.plan import WrapPlan
from specmap.trace.spool import SPOOL, Kind, Records, Tail
from specmap.trace.summary import Summary

Keep = Callable[[str, Cycle, list[Pass]], None]
"""Takes a rank's name, one of its cycles, and the passes in it."""


class RankReader:
    """Reads one rank, as far as it has written; what cannot be read is in ``failed``."""

    def __init__(self, folder: Path, name: str, plan: WrapPlan, names: TraceNames) -> None:
        self.failed = ""
        self.summary = Summary(plan, names)
        self._last_kind = 0
        self._read = 0
        try:
            self.tail = tail_of(folder, name)
        except TraceError as error:
            self.failed = str(error)
            self.tail = Tail(folder, name)

    def poll(self) -> None:
        """Read all that is new."""
        while records := self._next():
            self.summary.take(self.tail, records)

    def poll_pairs(self) -> Iterator[tuple[Cycle, list[Pass]]]:
        """Read a rank that has ended; yield each cycle with its passes, in order."""
        while records := self._next():
            yield from self.summary.paired(self.tail, records)
        yield from self.summary.rest(self.tail)

    def _next(self) -> Records | None:
        if self.failed:
            return None
        try:
            records = self.tail.poll()
        except TraceError as error:
            self.failed = str(error)
            return None
        if records:
            self._last_kind = records[len(records) - 1][2]
            self._read += len(records)
        return records

    @property
    def readable(self) -> bool:
        """Whether the rank can be read, at least in part."""
        return not self.failed or self.summary.records > 0

    def damage(self) -> list[str]:
        """Return a line for each file of the rank that is not as it should be."""
        if not self.readable:
            return [f"{self.failed}; the rank is left out"]
        found = self.tail.damage()
        if self.failed:
            found.append(f"{self.failed}; {self.summary.records} records before it were read")
        elif self.tail.header.get("finished") is True and self._is_cut():
            found.append(
                f"{self.tail.name}{SPOOL}: cut off behind its record {self.summary.records}; the "
                "rank wrote more and closed it"
            )
        if self.summary.senseless:
            found.append(
                f"{self.tail.name}{SPOOL}: {self.summary.senseless} records are of no kind that "
                "there is and were left out"
            )
        return found

    def _is_cut(self) -> bool:
        """Whether the log of a rank that closed it has lost its end.

        The header says how many records there were; of an older agent's, the last mark is looked
        for, which may stand in the middle, too.
        """
        written = self.tail.header.get("records")
        if isinstance(written, int):
            return 0 < self._read < written or self.tail.cut_bytes > 0  # empty is told elsewhere
        whole = self._last_kind == Kind.DISARM and not self.tail.cut_bytes
        return self.summary.records > 0 and not self.summary.senseless and not whole

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
