"""Rings that nobody took in, and the verb that removes them."""

from __future__ import annotations

import mmap
import os
import subprocess
import sys
from pathlib import Path

import pytest

from specmap import cli
from specmap.trace import leftover
from specmap.trace.leftover import left_rings

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are seen in /proc")

MINE = os.getuid()


@pytest.fixture
def ended() -> int:
    """Return the number of a process that is not there any more."""
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    return child.pid


def ring(folder: Path, pid: int, uid: int = MINE, end: str = "0123abcd") -> Path:
    path = folder / f"specmap-{uid}-{pid}-{end}"
    path.write_bytes(bytes(mmap.PAGESIZE))
    return path


def test_rings_of_ended_ranks_alone_are_left(tmp_path: Path, ended: int) -> None:
    left = ring(tmp_path, ended)
    ring(tmp_path, os.getpid())
    ring(tmp_path, ended, uid=MINE + 1)
    (tmp_path / "specmap-notes").write_bytes(b"")
    assert left_rings(tmp_path) == {left: mmap.PAGESIZE}
    assert left_rings(tmp_path / "gone") == {}


def test_a_ring_that_a_process_of_another_number_maps_is_in_use(tmp_path: Path, ended: int) -> None:
    path = ring(tmp_path, ended)
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0):
        assert left_rings(tmp_path) == {}
    assert list(left_rings(tmp_path)) == [path]


def test_the_verb_names_and_removes_them(
    tmp_path: Path, ended: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = ring(tmp_path, ended), ring(tmp_path, ended, end="89abcdef")
    kept = ring(tmp_path, os.getpid())
    monkeypatch.setattr(leftover.left_rings, "__defaults__", (tmp_path,))

    def said(*arguments: str) -> list[str]:
        monkeypatch.setattr(sys, "argv", ["specmap", "trace", "clean", *arguments])
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        assert stopped.value.code == 0
        return capsys.readouterr().out.splitlines()

    assert said("--dry-run") == [str(first), str(second), "2 rings can be removed, 0.0 MB"]
    assert first.exists()
    assert said() == [str(first), str(second), "2 rings removed, 0.0 MB"]
    assert said() == ["0 rings removed, 0.0 MB"]
    assert list(tmp_path.iterdir()) == [kept]
