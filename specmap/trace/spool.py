"""The raw records of a rank: read as they grow, cut where a rank was killed, salvaged.

A rank ``R`` has ``R.json`` (its header), ``R.names`` (JSON lines that records point to) and
``R.spool``: 64 bytes of header, then records of 32 bytes. What the rank had not yet written
when it was killed still lies in its ring in shared memory.
"""

from __future__ import annotations

import json
import os
import struct
from array import array
from collections.abc import Iterable, Iterator, Mapping
from enum import IntEnum
from pathlib import Path
from typing import Any

from specmap.errors import TraceError

RECORD = struct.Struct("<QIHhiiQ")
"""t_ns, target, kind, mode, size, value, object; little-endian."""

Record = tuple[int, int, int, int, int, int, int]

_FILE = struct.Struct("<8sII")
_FILE_BYTES = 64
_END = struct.Struct("<I")  # behind the version: why the rank wrote no more, else 0
_AGENT_FAILED = 0xFFFFFFFF
_MAGIC = b"SPECMAP1"
_RING_MAGIC = b"SPECRING"
_RING_PAGE = 4096
_RING = struct.Struct("<8sIIQ")
_CAPACITY, _HEAD, _TAIL, _DROPPED = 16, 64, 128, 192
_INT32 = (1 << 31) - 1
_CHUNK = 1 << 16
VERSION = 1
SCHEMA = 1
"""That of the JSON files of a run."""
_FILE_HEAD = _FILE.pack(_MAGIC, RECORD.size, VERSION).ljust(_FILE_BYTES, b"\0")
SHARED = Path("/dev/shm")
HEADER, NAMES, SPOOL, PARQUET = ".json", ".names", ".spool", ".parquet"


class Kind(IntEnum):
    """What a record says; ``docs/eventlog.md`` describes each."""

    ENTER = 1
    EXIT = 2
    RAISE = 3
    REASON = 4
    REPLAY = 5
    CAPTURE_BEGIN = 6
    CAPTURE_END = 7
    SYNC = 8
    GPU_SPAN = 9
    ACCEPT = 10
    DROPS = 11
    ARM = 12
    DISARM = 13
    NOTE = 14
    OVERHEAD = 15
    LAUNCHES = 16
    COUNTING = 17
    SALVAGED = 18


def ranks_in(folder: Path) -> list[str]:
    """Return the names of the ranks that left something in a run's folder.

    Raises:
        TraceError: the folder cannot be read.
    """
    try:
        names = [p.name for p in folder.iterdir() if p.name.startswith("rank-")]
    except OSError as error:
        raise TraceError(f"run {str(folder)!r}: {error.strerror or error}") from None
    kinds = (HEADER, SPOOL, PARQUET)
    found = {stem for stem, dot, kind in (n.partition(".") for n in names) if dot + kind in kinds}
    return sorted(found, key=rank_order)


def rank_order(name: str) -> tuple[tuple[int, int | str], ...]:
    """Return what orders names of ranks by their numbers."""
    return tuple((0, int(part)) if part.isdigit() else (1, part) for part in name.split("-"))


class Records:
    """Whole records, as they stand in a spool: one by one, or a field of all of them.

    ``times`` are those of the records; ``calls`` holds target, kind and mode of each in one
    number, ``sizes`` size and value, ``objects`` the object.
    """

    def __init__(self, data: bytes) -> None:
        words = array("Q", data)
        self.times, self.calls, self.sizes, self.objects = (words[at::4] for at in range(4))
        self._data = data

    @classmethod
    def of(cls, records: Iterable[Record]) -> Records:
        """Return the records that are given one by one."""
        return cls(b"".join(RECORD.pack(*record) for record in records))

    def __len__(self) -> int:
        return len(self.times)

    def __getitem__(self, at: int) -> Record:
        return RECORD.unpack_from(self._data, at * RECORD.size)

    def __iter__(self) -> Iterator[Record]:
        return RECORD.iter_unpack(self._data)


class Tail:
    """Reads one rank while it writes: each :meth:`poll` returns what came since the last."""

    def __init__(self, folder: Path, name: str) -> None:
        self.name = name
        self.header: Mapping[str, Any] = {}
        self.names: dict[int, Mapping[str, Any]] = {}
        self._folder = folder
        self._broken_header = False
        self._broken_names = 0
        self._spool_at = 0
        self._names_at = 0
        self._rest = b""

    def poll(self, limit: int = _CHUNK) -> Records:
        """Return up to ``limit`` new whole records; none: there are no more now.

        Raises:
            TraceError: the file is no spool, or of another version.
        """
        self._poll_header()
        self._poll_names()
        path = self._folder / (self.name + SPOOL)
        if self._spool_at == 0 and not self._begins(path):
            return Records(b"")
        data = self._rest + _read(path, self._spool_at, limit * RECORD.size - len(self._rest))
        self._spool_at += len(data) - len(self._rest)
        whole = len(data) - len(data) % RECORD.size
        self._rest = data[whole:]
        return Records(data[:whole])

    @property
    def cut_bytes(self) -> int:
        """Bytes behind the last whole record: half a record, where the rank was killed."""
        return len(self._rest)

    def damage(self) -> list[str]:
        """Return a line for each file of a rank that has ended and cannot be read as it should."""
        found = []
        header, names = self.name + HEADER, self.name + NAMES
        if self._broken_header or not (self._folder / header).exists():
            what = "no JSON object of a rank" if self._broken_header else "missing"
            found.append(
                f"{header}: {what}; the rank's versions, arguments and classes are not known, and "
                "what it had in memory is not saved"
            )
        if self._broken_names:
            found.append(f"{names}: {self._broken_names} lines are no JSON; reasons are missing")
        if not (self._folder / names).exists():
            found.append(f"{names}: missing; reasons and places have no text")
        return [*found, *self._spool_damage()]

    @property
    def cut_short(self) -> str:
        """Why the rank wrote no more while it went on; else ""."""
        head = _read(self._folder / (self.name + SPOOL), 0, _FILE_BYTES)
        number = _END.unpack_from(head, _FILE.size)[0] if len(head) == _FILE_BYTES else 0
        if number == _AGENT_FAILED:
            return "the agent failed, as its line among the server's output says"
        return f"the disk refused more ({os.strerror(number)})" if number else ""

    def _spool_damage(self) -> Iterator[str]:
        if len(_read(self._folder / (self.name + SPOOL), 0, _FILE_BYTES)) < _FILE_BYTES:
            yield f"{self.name}{SPOOL}: empty; this rank left no record"
        elif why := self.cut_short:
            yield f"{self.name}{SPOOL}: {why}; the rank wrote nothing after that"

    def _begins(self, path: Path) -> bool:
        head = _read(path, 0, _FILE_BYTES)
        if len(head) < _FILE_BYTES:
            return False
        magic, size, version = _FILE.unpack_from(head)
        if magic != _MAGIC or size != RECORD.size:
            raise TraceError(f"{path.name}: not a spool of specmap; name the folder of a run")
        if version != VERSION:
            raise TraceError(
                f"{path.name}: version {version}, this specmap reads {VERSION}; "
                "read it with the specmap that recorded it"
            )
        self._spool_at = _FILE_BYTES
        return True

    def _poll_header(self) -> None:
        data = _read(self._folder / (self.name + HEADER), 0, -1)
        found = header_of(data, self.name + HEADER)
        self._broken_header = bool(data) and found is None
        self.header = found or self.header

    def _poll_names(self) -> None:
        path = self._folder / (self.name + NAMES)
        data = _read(path, self._names_at, -1)
        whole = data.rfind(b"\n") + 1
        self._names_at += whole
        for line in data[:whole].splitlines():
            try:
                item = json.loads(line)
                self.names[int(item["id"])] = item
            except (ValueError, KeyError, TypeError):
                self._broken_names += 1


def _read(path: Path, start: int, count: int) -> bytes:
    """Return up to ``count`` bytes from ``start`` (all with -1); nothing where no file is."""
    try:
        with path.open("rb") as file:
            file.seek(start)
            return file.read(count)
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise TraceError(f"{path.name}: {error.strerror or error}") from None


def _parsed(text: bytes) -> Mapping[str, Any] | None:
    try:
        data = json.loads(text)
    except ValueError:
        return None
    return data if isinstance(data, dict) else None


# Tables of a header: those of values, and those that go by a number.
_TABLES = ("arguments", "environment", "modes", "classes")
_NUMBERED = ("modes", "classes")


def header_of(text: bytes, name: str) -> Mapping[str, Any] | None:
    """Read a rank's header, None where the text is none; ``name`` is the file in messages.

    Raises:
        TraceError: it is of another schema.
    """
    found = _parsed(text)
    if found is None:
        return None
    check_schema(found, name)
    tables = all(isinstance(found.get(key) or {}, dict) for key in _TABLES)
    return found if tables and all(_is_numbered(found.get(key)) for key in _NUMBERED) else None


def check_schema(data: Mapping[str, Any], name: str) -> None:
    """Refuse a file of a run that another version wrote.

    Raises:
        TraceError: its schema is not the one that is read here.
    """
    schema = data.get("schema", SCHEMA)
    if schema != SCHEMA:
        raise TraceError(
            f"{name}: schema {schema!r}, this specmap reads {SCHEMA}; "
            "read it with the specmap that recorded it"
        )


def _is_numbered(table: object) -> bool:
    return table is None or (isinstance(table, dict) and all(map(_is_number, table)))


def _is_number(key: str) -> bool:
    return key.removeprefix("-").isdecimal()


def salvage(folder: Path, name: str, shared: Path = SHARED) -> int:
    """Append what a dead rank left in shared memory to its spool; return the records saved.

    The ring is removed afterwards, and a mark behind the records says that all are there. A
    rank that still runs, and one that left no ring, is left alone. Half a record at the end of
    the spool is cut first.

    Raises:
        TraceError: the spool cannot be written.
    """
    header = _parsed(_read(folder / (name + HEADER), 0, -1)) or {}
    ring, pid = header.get("shm"), header.get("pid")
    if not isinstance(ring, str) or "/" in ring or alive(pid):
        return 0
    path = shared / ring
    data = _read(path, 0, -1)
    if not _is_ring(data):
        return 0
    spool = folder / (name + SPOOL)
    dropped = _word(data, _DROPPED)
    told, marks = _told(spool) if dropped else (0, 0)
    spooled = _records(spool) - marks
    first, saved = _unwritten(data, spooled)
    lost = dropped - told - _drops(saved)[0]
    end_ns = _last_ns(spool, saved)
    if lost > 0:
        saved += RECORD.pack(end_ns, 0, Kind.DROPS, -1, -1, min(lost, _INT32), 0)
    try:
        with spool.open("r+b" if spool.exists() else "w+b") as file:
            file.write(b"" if _records(spool) else _FILE_HEAD)
            file.truncate(_FILE_BYTES + _records(spool) * RECORD.size)
            file.seek(0, 2)
            file.write(saved)
            if first <= spooled:
                file.write(RECORD.pack(end_ns, 0, Kind.SALVAGED, -1, -1, -1, 0))
        path.unlink(missing_ok=True)
    except OSError as error:
        raise TraceError(f"{spool.name}: {error.strerror or error}") from None
    return len(saved) // RECORD.size


def _is_ring(data: bytes) -> bool:
    if len(data) < _RING_PAGE:
        return False
    magic, version, size, capacity = _RING.unpack_from(data)
    whole = len(data) >= _RING_PAGE + capacity * RECORD.size
    return whole and capacity > 0 and (magic, version, size) == (_RING_MAGIC, VERSION, RECORD.size)


def _word(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 8], "little")


def _told(spool: Path) -> tuple[int, int]:
    """Return how many lost records a spool speaks of, and in how many marks of its own."""
    total, marks, left = 0, 0, _records(spool)
    while left > 0:
        count = min(left, _CHUNK)
        start = _FILE_BYTES + (_records(spool) - left) * RECORD.size
        more = _drops(_read(spool, start, count * RECORD.size))
        total, marks, left = total + more[0], marks + more[1], left - count
    return total, marks


def _drops(data: bytes) -> tuple[int, int]:
    whole = data[: len(data) - len(data) % RECORD.size]
    found = [value for _, _, kind, _, _, value, _ in RECORD.iter_unpack(whole)
             if kind == Kind.DROPS]  # fmt: skip
    return sum(found), len(found)


def _last_ns(spool: Path, saved: bytes) -> int:
    """Return the time of the last record, of those saved or of the spool; 0 where none is."""
    count = _records(spool)
    last = saved or (_read(spool, _FILE_BYTES + (count - 1) * RECORD.size, RECORD.size)
                     if count else b"")  # fmt: skip
    return int(RECORD.unpack(last[-RECORD.size :])[0]) if last else 0


def _records(spool: Path) -> int:
    try:
        return max(0, spool.stat().st_size - _FILE_BYTES) // RECORD.size
    except OSError:
        return 0


def _unwritten(data: bytes, spooled: int) -> tuple[int, bytes]:
    """Return the ring's records that the spool does not hold, and the number of the first."""
    capacity = _word(data, _CAPACITY)
    head = _word(data, _HEAD)
    first = max(_word(data, _TAIL), spooled, head - capacity)
    places = (_RING_PAGE + index % capacity * RECORD.size for index in range(first, head))
    return first, b"".join(data[at : at + RECORD.size] for at in places)


def alive(pid: object) -> bool:
    """Whether a process runs; one that ended and was not waited for does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[:1] != ["Z"]
