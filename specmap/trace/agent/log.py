"""The files of a rank: raw records appended, names appended, the header rewritten."""

from __future__ import annotations

import contextlib
import errno
import json
import os
from time import monotonic_ns
from typing import Any

from .faults import say
from .memory import Memory
from .names import Names
from .records import (
    DROPPED,
    DROPS,
    FOREIGN,
    HEAD,
    NONE,
    PAGE_BYTES,
    RECORD,
    SPOOL_END,
    SPOOL_HEADER,
    TAIL,
)


class Log:
    """Copies the ring to ``<rank>.spool``; only one thread at a time may call it.

    When the disk refuses, ``failed`` says why and nothing is written any more.
    """

    def __init__(self, folder: str, rank: str, memory: Memory, names: Names) -> None:
        self.folder, self.rank = folder, _free(folder, rank)
        self.failed = ""
        self.lost = 0
        self.records = 0
        self._memory, self._names = memory, names
        self._words = memoryview(memory.map)[:PAGE_BYTES].cast("Q")
        self._told = self._last_ns = 0
        self._gap: tuple[int, int] | None = None
        self._spool = self._named = -1
        try:
            self._spool = self._open("spool")
            self._named = self._open("names")
            self._write(self._spool, SPOOL_HEADER)
        except OSError as error:
            self._fail(error)

    @property
    def drops(self) -> int:
        """Return how many records were lost: the ring was full, or the disk refused."""
        return self._words[DROPPED] + self.lost

    @property
    def foreign(self) -> int:
        """Return how many calls were left out because another thread made them."""
        return self._words[FOREIGN]

    def drain(self) -> None:
        """Append what the ring and the names hold."""
        words = self._words
        tail, head = words[TAIL], words[HEAD]
        if self._gap is not None:
            place, count = self._gap
            self._copy(tail, place)
            self.mark(DROPS, count, self._last_ns)
            tail, self._gap = place, None
        self._copy(tail, head)
        full, words[TAIL] = words[TAIL] + self._memory.records, head
        self._tell_drops(full, head)
        lines = self._names.take()
        if lines and not self.failed:
            try:
                self._write(self._named, lines)
            except OSError as error:
                self._fail(error)

    def _copy(self, start: int, end: int) -> None:
        """Append the records of numbers ``start`` to ``end``, which the ring still holds."""
        records = self._memory.records
        while start < end and not self.failed:
            first = start % records
            count = min(end - start, records - first)
            position = PAGE_BYTES + first * RECORD.size
            data = self._memory.map[position : position + count * RECORD.size]
            self._append(data)
            self._last_ns = int.from_bytes(data[-RECORD.size :][:8], "little")
            start += count
        self.lost += end - start

    def _tell_drops(self, full: int, head: int) -> None:
        """Mark what was dropped; the ring was full at record ``full``, which may be to come."""
        new = self._words[DROPPED] - self._told
        if new:
            self._told += new
            count = min(new, (1 << 31) - 1)
            if head >= full:
                self.mark(DROPS, count, self._last_ns)
            else:
                self._gap = (full, count)

    def _append(self, data: bytes) -> None:
        try:
            self._write(self._spool, data)
            self.records += len(data) // RECORD.size
        except OSError as error:
            self._fail(error)

    def mark(self, kind: int, value: int = NONE, t_ns: int = 0) -> None:
        """Append a record of this thread's own, of a time or of now."""
        if not self.failed:
            self._append(RECORD.pack(t_ns or monotonic_ns(), 0, kind, NONE, NONE, value, 0))

    def write_header(self, header: dict[str, Any]) -> None:
        """Replace ``<rank>.json``, so that a reader sees the old one or the new one."""
        path = f"{self.folder}/{self.rank}.json"
        counts = {"drops": self.drops, "foreign": self.foreign, "records": self.records}
        text = json.dumps({**header, **counts}, default=str)
        try:
            with open(f"{path}.tmp", "w", encoding="utf-8") as file:
                file.write(f"{text}\n")
            os.replace(f"{path}.tmp", path)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.unlink(f"{path}.tmp")
            self._fail(error)

    def close(self) -> None:
        """Close the files."""
        for descriptor in (self._spool, self._named):
            if descriptor >= 0:
                with contextlib.suppress(OSError):
                    os.close(descriptor)
        self._spool = self._named = -1

    def _open(self, ending: str) -> int:
        path = f"{self.folder}/{self.rank}.{ending}"
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)

    def _write(self, descriptor: int, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]

    def _fail(self, error: OSError) -> None:
        if not self.failed:
            self.failed = error.strerror or type(error).__name__
            say(f"no trace in {self.folder}: {self.failed}; the server goes on")
            self.mark_end(error.errno or errno.EIO)

    def mark_end(self, number: int) -> None:
        """Say why nothing follows in the spool's own first bytes, which are on the disk already."""
        with contextlib.suppress(OSError):
            spool = os.open(f"{self.folder}/{self.rank}.spool", os.O_WRONLY | os.O_CLOEXEC)
            try:
                if os.fstat(spool).st_size >= len(SPOOL_HEADER):
                    os.pwrite(spool, number.to_bytes(4, "little"), SPOOL_END)
            finally:
                os.close(spool)


def _free(folder: str, rank: str) -> str:
    """Return a name without a spool yet: a rank may be traced twice into one folder."""
    name, number = rank, 1
    while os.path.exists(f"{folder}/{name}.spool"):
        number += 1
        name = f"{rank}-{number}"
    return name
