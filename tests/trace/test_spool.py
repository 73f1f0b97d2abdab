from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from specmap.errors import TraceError
from specmap.trace.spool import RECORD, Kind, Tail, ranks_in, salvage
from tests.trace.spools import FILE_HEAD, Rank, records_of

CAPACITY = 8


def some(count: int) -> Rank:
    rank = Rank()
    rank.header["finished"] = False
    for number in range(count):
        rank.put(Kind.ENTER, number)
    return rank


def test_a_file_cut_at_any_byte_gives_its_whole_records(tmp_path: Path) -> None:
    rank = some(3)
    name = rank.write(tmp_path)
    path = tmp_path / f"{name}.spool"
    data = path.read_bytes()
    for length in range(len(data)):
        path.write_bytes(data[:length])
        tail = Tail(tmp_path, name)
        whole = max(0, length - len(FILE_HEAD)) // 32
        assert [r[1] for r in tail.poll()] == list(range(whole))
        assert tail.cut_bytes == (length - 64) % 32 if length >= 64 else tail.cut_bytes == 0


def test_a_growing_file_is_read_once_byte_by_byte(tmp_path: Path) -> None:
    rank = some(4)
    name = rank.write(tmp_path)
    path = tmp_path / f"{name}.spool"
    data = path.read_bytes()
    path.unlink()
    tail = Tail(tmp_path, name)
    found = list(tail.poll())
    for length in range(len(data) + 1):
        path.write_bytes(data[:length])
        found += tail.poll()
    assert [record[1] for record in found] == [0, 1, 2, 3]
    assert tail.cut_bytes == 0


def test_a_poll_is_bounded(tmp_path: Path) -> None:
    rank = some(10)
    tail = Tail(tmp_path, rank.write(tmp_path))
    assert [len(tail.poll(4)) for _ in range(4)] == [4, 4, 2, 0]


def test_names_and_header_are_read_as_they_come(tmp_path: Path) -> None:
    rank = some(1)
    rank.reason(9, "a < b", a=2, b=1)
    name = rank.write(tmp_path)
    names = tmp_path / f"{name}.names"
    text = names.read_text("utf-8")
    names.write_text(text[:-5], "utf-8")
    (tmp_path / f"{name}.json").unlink()
    tail = Tail(tmp_path, name)
    tail.poll()
    assert (dict(tail.header), tail.names) == ({}, {})
    names.write_text(text + '{"id": 2, "kind"', "utf-8")
    (tmp_path / f"{name}.json").write_text('{"pid": 7}', "utf-8")
    tail.poll()
    assert tail.header["pid"] == 7
    assert [item["conjunct"] for item in tail.names.values()] == ["a < b"]


@pytest.mark.parametrize(
    ("head", "said"),
    [
        (b"SPECMAP1" + bytes([32, 0, 0, 0, 2, 0, 0, 0]), "version 2, this specmap reads 1"),
        (b"SPECMAP1" + bytes([40, 0, 0, 0, 1, 0, 0, 0]), "not a spool of specmap"),
        (b"PK\x03\x04____" + bytes([32, 0, 0, 0, 1, 0, 0, 0]), "not a spool of specmap"),
    ],
)
def test_another_file_is_refused_by_name(tmp_path: Path, head: bytes, said: str) -> None:
    (tmp_path / "rank-0-0-0-7.spool").write_bytes(head.ljust(64, b"\0"))
    with pytest.raises(TraceError, match=rf"^rank-0-0-0-7\.spool: {said}"):
        Tail(tmp_path, "rank-0-0-0-7").poll()


def test_ranks_are_listed_by_number(tmp_path: Path) -> None:
    names = (
        "rank-10-0-0-5.json", "rank-2-0-0-9.spool", "rank-2-0-0-9.json", "plan.json",
        "rank-0-0-1-3.parquet", "rank-0-0-1-3.passes.parquet", ".rank-1-0-0-4.spool",
    )  # fmt: skip
    for name in names:
        (tmp_path / name).touch()
    assert ranks_in(tmp_path) == ["rank-0-0-1-3", "rank-2-0-0-9", "rank-10-0-0-5"]
    with pytest.raises(TraceError, match="No such file"):
        ranks_in(tmp_path / "gone")


def ring(records: list[bytes], tail: int, drops: int = 0) -> bytes:
    """Return a ring of 8 places into which ``records`` were written, ``tail`` of them spooled."""
    page = bytearray(4096)
    page[:16] = b"SPECRING" + bytes([1, 0, 0, 0, 32, 0, 0, 0])
    for at, value in ((16, CAPACITY), (64, len(records)), (128, tail), (192, drops)):
        page[at : at + 8] = value.to_bytes(8, "little")
    places = [bytes(32)] * CAPACITY
    for number, record in enumerate(records):
        places[number % CAPACITY] = record
    return bytes(page) + b"".join(places)


def spooled(folder: Path, name: str) -> list[int]:
    data = (folder / f"{name}.spool").read_bytes()[64:]
    assert len(data) % 32 == 0
    return [record[1] for record in RECORD.iter_unpack(data)]


@pytest.mark.parametrize("in_file", [0, 3, 5, 6])
def test_what_a_killed_rank_left_in_memory_is_saved(tmp_path: Path, in_file: int) -> None:
    """The ring says that 5 were spooled; the file may hold more, or have lost its end."""
    rank = some(12)
    rank.header |= {"shm": "specmap-7", "pid": 2**31 - 1}
    records = rank.records
    rank.records = records[:in_file]
    name = rank.write(tmp_path)
    with (tmp_path / f"{name}.spool").open("ab") as file:
        file.write(records[in_file][:10])  # and half a record
    shared = tmp_path / "shm"
    shared.mkdir()
    (shared / "specmap-7").write_bytes(ring(records, tail=5))
    kept = list(range(in_file))
    assert salvage(tmp_path, name, shared) == 12 - max(5, in_file)
    (*every, last) = records_of(tmp_path, name)
    whole = in_file >= 5  # else the file lost its end
    assert (last[2] == Kind.SALVAGED) is whole
    numbers = [one[1] for one in every] if whole else spooled(tmp_path, name)
    assert numbers == kept + list(range(max(5, in_file), 12))
    assert not (shared / "specmap-7").exists()
    assert salvage(tmp_path, name, shared) == 0


def test_losses_that_nobody_told_are_told(tmp_path: Path) -> None:
    rank = some(4)
    rank.put(Kind.DROPS, 99, value=3)
    rank.header |= {"shm": "specmap-7", "pid": 2**31 - 1}
    name = rank.write(tmp_path)
    (tmp_path / "specmap-7").write_bytes(ring(rank.records, tail=5, drops=10))
    assert salvage(tmp_path, name, tmp_path) == 1
    last = (tmp_path / f"{name}.spool").read_bytes()[-32:]
    assert RECORD.unpack(last)[2:6:3] == (Kind.DROPS, 7)


def test_marks_of_losses_in_the_file_are_no_records_of_the_ring(tmp_path: Path) -> None:
    rank, in_ring = some(3), some(8)
    for _ in range(2):
        rank.put(Kind.DROPS, 99, value=1)
    rank.header |= {"shm": "specmap-7", "pid": 2**31 - 1}
    name = rank.write(tmp_path)
    (tmp_path / "specmap-7").write_bytes(ring(in_ring.records, tail=3, drops=2))
    assert salvage(tmp_path, name, tmp_path) == 5
    kinds = [(one[1], one[2]) for one in records_of(tmp_path, name)][5:]
    assert [target for target, _ in kinds] == [3, 4, 5, 6, 7, 0]
    assert kinds[-1] == (0, Kind.SALVAGED)


def test_a_rank_killed_before_its_first_flush_is_saved_too(tmp_path: Path) -> None:
    rank = some(4)
    rank.header |= {"shm": "specmap-7", "pid": 2**31 - 1}
    name = rank.write(tmp_path)
    (tmp_path / f"{name}.spool").unlink()
    (tmp_path / "specmap-7").write_bytes(ring(rank.records, tail=0))
    assert salvage(tmp_path, name, tmp_path) == 4
    assert [record[1] for record in Tail(tmp_path, name).poll()][:-1] == [0, 1, 2, 3]


def test_the_ring_of_a_running_rank_is_left_alone(tmp_path: Path) -> None:
    rank = some(4)
    rank.header |= {"shm": "specmap-7", "pid": os.getpid()}
    name = rank.write(tmp_path)
    (tmp_path / "specmap-7").write_bytes(ring(rank.records, tail=0))
    assert salvage(tmp_path, name, tmp_path) == 0
    assert (tmp_path / "specmap-7").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="zombies are seen in /proc")
def test_a_rank_that_nobody_waited_for_is_dead(tmp_path: Path) -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    rank = some(4)
    rank.header |= {"shm": "specmap-7", "pid": child.pid}
    name = rank.write(tmp_path)
    (tmp_path / "specmap-7").write_bytes(ring(rank.records, tail=4))
    salvage(tmp_path, name, tmp_path)
    child.wait()
    assert not (tmp_path / "specmap-7").exists()


@pytest.mark.parametrize("content", [b"", b"junk", b"x" * 5000])
def test_a_ring_that_is_none_is_not_read(tmp_path: Path, content: bytes) -> None:
    rank = some(2)
    rank.header |= {"shm": "specmap-7", "pid": 2**31 - 1}
    name = rank.write(tmp_path)
    (tmp_path / "specmap-7").write_bytes(content)
    salvage(tmp_path, name, tmp_path)
    assert spooled(tmp_path, name) == [0, 1]
