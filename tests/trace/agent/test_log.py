"""The mark of dropped records stands where they are missing."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from specmap.trace.agent.log import Log
from specmap.trace.agent.memory import Memory
from specmap.trace.agent.names import Names
from specmap.trace.agent.ring import PythonRing
from tests.trace.agent.toy import DROPS, ENTER

RECORDS = 8


class Kept:
    """A ring of eight records and its log; records are told apart by their value."""

    def __init__(self, folder: Path) -> None:
        self.memory = Memory(RECORDS)
        self.memory.unlink()
        self.ring = PythonRing()
        self.ring.attach(self.memory.map, RECORDS)
        self.log = Log(str(folder), "rank", self.memory, Names())
        self.spool = folder / "rank.spool"

    def put(self, *values: int) -> None:
        for value in values:
            self.ring.put(1, ENTER, -1, -1, value, 0)

    def read(self) -> list[str]:
        records = struct.iter_unpack("<QIHhiiQ", self.spool.read_bytes()[64:])
        return [f"{value} lost" if kind == DROPS else str(value)
                for _, _, kind, _, _, value, _ in records]  # fmt: skip


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    return Kept(tmp_path)


def test_a_mark_follows_the_record_after_which_others_are_missing(kept: Kept) -> None:
    kept.put(*range(11))
    kept.log.drain()
    kept.put(11, 12)
    kept.log.drain()
    assert kept.read() == [*map(str, range(8)), "3 lost", "11", "12"]
    assert kept.log.drops == 3


def test_a_ring_that_fills_up_while_it_is_read_is_marked_where_it_was_full(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept.put(*range(5))
    copy = kept.log._copy

    def interrupted(start: int, end: int) -> None:
        copy(start, end)
        monkeypatch.undo()
        kept.put(5, 6, 7, 8, 9)

    monkeypatch.setattr(kept.log, "_copy", interrupted)
    kept.log.drain()
    kept.put(10)
    kept.log.drain()
    assert kept.read() == [*map(str, range(8)), "2 lost", "10"]
    assert kept.log.drops == 2
