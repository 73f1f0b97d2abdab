from __future__ import annotations

import io
import os
import pty
import shutil
import struct
import subprocess
import sys
import termios
import time
from fcntl import ioctl
from pathlib import Path

import pyte
import pytest

from specmap.cli_live import Footer, footer
from tests.trace.server import plant_server

COLUMNS, ROWS = 60, 12


class Terminal(io.StringIO):
    """A terminal that two programs write to; ``screen`` is what a person sees."""

    def __init__(self) -> None:
        super().__init__()
        self.screen = pyte.HistoryScreen(COLUMNS, ROWS, history=100)
        self._stream = pyte.Stream(self.screen)

    def write(self, text: str) -> int:
        self._stream.feed(text.replace("\n", "\r\n"))
        return len(text)

    @property
    def lines(self) -> list[str]:
        return [line.rstrip() for line in self.screen.display]

    @property
    def scrolled(self) -> list[str]:
        """Lines that left at the top, where a person scrolls back to."""
        history = self.screen.history.top
        return ["".join(row[x].data for x in range(COLUMNS)).rstrip() for row in history]


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.setattr(shutil, "get_terminal_size", lambda: os.terminal_size((COLUMNS, ROWS)))
    return Terminal()


def test_a_log_scrolls_above_the_footer_and_nothing_is_lost(terminal: Terminal) -> None:
    kept = Footer(terminal)
    terminal.write("$ specmap trace\n")
    kept.show(["HEAD", "row 1"])
    for number in range(20):
        terminal.write(f"log {number}\n")
    kept.show(["HEAD", "row 2"])
    terminal.write("half a ")
    kept.show(["HEAD", "row 3"])
    terminal.write("line\n")
    assert terminal.lines[-2:] == ["HEAD", "row 3"]
    written = terminal.scrolled + terminal.lines[:-2]
    assert list(filter(None, written)) == [
        "$ specmap trace", *(f"log {number}" for number in range(20)), "half a line",
    ]  # fmt: skip


def test_a_footer_may_grow_and_shrink(terminal: Terminal) -> None:
    kept = Footer(terminal)
    for number in range(9):
        terminal.write(f"log {number}\n")
    kept.show(["HEAD"])
    kept.show(["HEAD", "a", "b"])
    assert terminal.lines[-3:] == ["HEAD", "a", "b"]
    kept.show(["HEAD", "c"])
    assert terminal.lines[-3:] == ["HEAD", "c", ""]
    written = terminal.scrolled + terminal.lines[:-3]
    assert list(filter(None, written)) == [f"log {number}" for number in range(9)]


def test_long_lines_and_long_tables_are_cut(terminal: Terminal) -> None:
    kept = Footer(terminal)
    terminal.write("log\n")
    kept.show([f"{number} " + "x" * 200 for number in range(30)])
    assert [line[:2] for line in terminal.lines[-8:]] == [f"{number} " for number in range(8)]


def test_the_rows_are_given_back(terminal: Terminal) -> None:
    kept = Footer(terminal)
    terminal.write("log\n")
    kept.show(["HEAD", "row"])
    kept.close()
    for number in range(ROWS):
        terminal.write(f"more {number}\n")
    assert terminal.lines == [*(f"more {number}" for number in range(1, ROWS)), ""]


def test_no_footer_where_nobody_watches(monkeypatch: pytest.MonkeyPatch) -> None:
    with footer(quiet=False) as kept:
        assert kept is None  # pytest's stderr is no terminal
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "dumb")
    with footer(quiet=False) as kept:
        assert kept is None
    monkeypatch.setenv("TERM", "xterm")
    with footer(quiet=True) as kept:
        assert kept is None


def test_a_person_sees_the_log_and_the_table_and_presses_ctrl_c(tmp_path: Path) -> None:
    """The real thing on a real pseudo-terminal: the key reaches specmap, and then the server."""
    tree = plant_server(tmp_path / "tree")
    ours, theirs = pty.openpty()
    ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", 24, 100, 0, 0))
    environment = {
        **os.environ, "SPECMAP_CACHE_DIR": str(tmp_path / "cache"), "TERM": "xterm",
        "SPECMAP_SOCKETS": str(tmp_path), "COLUMNS": "100", "LINES": "24",
    }  # fmt: skip
    command = [sys.executable, str(tree / "serve.py"), "1", "-1", "9", "0.02"]
    process = subprocess.Popen(
        [sys.executable, "-m", "specmap", "trace", "--live", "--", *command],
        cwd=tmp_path, env=environment, stdin=theirs, stdout=theirs, stderr=theirs,
        start_new_session=True, preexec_fn=lambda: ioctl(0, termios.TIOCSCTTY, 0),
    )  # fmt: skip
    os.close(theirs)
    screen = pyte.HistoryScreen(100, 24, history=1000)
    stream = pyte.ByteStream(screen)
    watched = ""
    until = time.monotonic() + 120
    while time.monotonic() < until:
        try:
            stream.feed(os.read(ours, 1 << 16))
        except OSError:  # the other end is closed
            break
        view = "\n".join(screen.display)
        if not watched and "cycles in" in view and "EAGLEWorker.verify" in view:
            watched = view
            os.write(ours, b"\x03")
    os.close(ours)
    assert process.wait() == 1
    assert "ready " in watched
    assert "EAGER" in watched
    assert screen.margins is None
    scrolled = ["".join(row[x].data for x in range(100)).rstrip() for row in screen.history.top]
    written = scrolled + [line.rstrip() for line in screen.display]
    assert any(line.endswith("interrupted") for line in written)  # the terminal echoes "^C"
    assert "Recorded in output/trace-1" in written
    assert not any("cycles in" in line for line in written)
