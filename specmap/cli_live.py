"""Lines at the bottom of the terminal that stay while a server writes its log above them."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from specmap.codemap.event import RankRun

_ESC = "\x1b"
_SAVE, _RESTORE, _DOWN = f"{_ESC}7", f"{_ESC}8", f"{_ESC}D"
_NO_WRAP, _WRAP = f"{_ESC}[?7l", f"{_ESC}[?7h"
_ALL_ROWS = f"{_ESC}[r"
_CLEAR_LINE, _CLEAR_BELOW = f"{_ESC}[2K", f"{_ESC}[J"
_ROWS_LEFT_ABOVE = 4


class Footer:
    """The last rows of a terminal, outside of what scrolls.

    The server writes to the same terminal and knows nothing of us, so a display that moves
    up over its own lines would paint over the server's. Instead the scrolling region ends
    above the footer (DECSTBM, as apt does for its bar), and each refresh is one write that
    saves and restores the cursor.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._size = (0, 0)
        self._height = 0

    def show(self, lines: Sequence[str]) -> None:
        """Show these lines instead of the last ones; what does not fit is left out."""
        columns, rows = shutil.get_terminal_size()
        lines = lines[: max(rows - _ROWS_LEFT_ABOVE, 0)]
        text = ""
        if (columns, rows) != self._size or len(lines) > self._height:
            text = self._closed() + self._opened(rows, len(lines))
            self._size, self._height = (columns, rows), len(lines)
        first = rows - self._height + 1
        padded = [*lines, *[""] * (self._height - len(lines))]
        drawn = "".join(
            f"{_ESC}[{first + place};1H{_CLEAR_LINE}{line}" for place, line in enumerate(padded)
        )
        self._write(f"{text}{_SAVE}{_NO_WRAP}{drawn}{_WRAP}{_RESTORE}")

    def close(self) -> None:
        """Give the rows back."""
        if self._height:
            self._write(self._closed())
            self._height = 0

    def _opened(self, rows: int, height: int) -> str:
        """Make room below the cursor, then keep it out of what scrolls."""
        room = _DOWN * height + f"{_ESC}[{height}A" if height else ""
        return f"{room}{_SAVE}{_ESC}[1;{rows - height}r{_RESTORE}"

    def _closed(self) -> str:
        return f"{_SAVE}{_ALL_ROWS}{_RESTORE}{_CLEAR_BELOW}" if self._height else ""

    def _write(self, text: str) -> None:
        # The terminal may go away while a server runs on.
        with contextlib.suppress(OSError):
            self._stream.write(text)
            self._stream.flush()


def rendered(ranks: tuple[RankRun, ...], state: str, color: bool) -> list[str]:
    """Return the table of the ranks so far, in lines that fit the terminal."""
    from specmap.report.options import RenderOptions
    from specmap.report.run_text import render_ranks

    options = RenderOptions(width=shutil.get_terminal_size().columns, color=color)
    return [f"specmap: {state}", *render_ranks(ranks, options).splitlines()]


@contextlib.contextmanager
def footer(quiet: bool) -> Iterator[Footer | None]:
    """Give a footer on stderr when a person watches a terminal that can keep one."""
    if quiet or not sys.stderr.isatty() or os.environ.get("TERM", "dumb") == "dumb":
        yield None
        return
    kept = Footer(sys.stderr)
    try:
        yield kept
    finally:
        kept.close()
