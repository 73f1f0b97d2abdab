"""Memory of a ring: a file in /dev/shm that outlives a killed rank, else anonymous memory."""

from __future__ import annotations

import contextlib
import mmap
import os

from .records import PAGE_BYTES, RECORD, page

_FOLDER = "/dev/shm"


class Memory:
    """``PAGE_BYTES`` of header and ``records`` records; ``name`` is its file in /dev/shm."""

    def __init__(self, records: int) -> None:
        self.records = records
        size = PAGE_BYTES + records * RECORD.size
        self.name: str | None = f"specmap-{os.getuid()}-{os.getpid()}-{os.urandom(4).hex()}"
        try:
            self.map = _shared(f"{_FOLDER}/{self.name}", size)
        except OSError:
            self.name, self.map = None, mmap.mmap(-1, size)
        start = page(records, os.getpid())
        self.map[: len(start)] = start

    def unlink(self) -> None:
        """Remove the file; the memory stays until the process ends."""
        if self.name is not None:
            with contextlib.suppress(OSError):
                os.unlink(f"{_FOLDER}/{self.name}")
            self.name = None


def _shared(path: str, size: int) -> mmap.mmap:
    """Map a new file, its blocks reserved first: a full /dev/shm must fail here, not later.

    Raises:
        OSError: there is no room, or no /dev/shm.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        os.posix_fallocate(descriptor, 0, size)
        return mmap.mmap(descriptor, size)
    except OSError:
        os.unlink(path)
        raise
    finally:
        os.close(descriptor)
