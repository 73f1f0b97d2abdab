from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from specmap.trace.agent import memory
from specmap.trace.agent.memory import Memory


def test_the_ring_is_a_private_file_in_shared_memory() -> None:
    made = Memory(16)
    assert made.name is not None
    file = Path("/dev/shm") / made.name
    assert file.stat().st_size == 4096 + 16 * 32
    assert file.stat().st_mode & 0o777 == 0o600
    made.map[4096:4100] = b"seen"
    assert file.read_bytes()[4096:4100] == b"seen"
    made.unlink()
    assert not file.exists()
    assert made.map[4096:4100] == b"seen"


def test_full_shared_memory_is_not_touched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its blocks are asked for first: a write into a hole of a full file system kills."""

    def full(descriptor: int, start: int, size: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(memory, "_FOLDER", str(tmp_path))
    monkeypatch.setattr(os, "posix_fallocate", full)
    made = Memory(16)
    assert made.name is None
    assert list(tmp_path.iterdir()) == []
    made.map[4096:4100] = b"kept"
