"""One line to a person on stderr; the agent never prints otherwise."""

from __future__ import annotations

import contextlib
import os

_said: set[str] = set()
_waiting: list[str] = []


def say(text: str) -> None:
    """Write one line to stderr, each text once a process; never raises."""
    if text in _said:
        return
    _said.add(text)
    _waiting.append(text)
    with contextlib.suppress(OSError):
        os.write(2, f"specmap: {text}\n".encode("utf-8", "replace"))


def told() -> list[str]:
    """Return the lines since the last call, for the run's files."""
    lines = _waiting[:]
    del _waiting[: len(lines)]
    return lines


def line_of(error: BaseException, limit: int = 300) -> str:
    """Return an exception on one line."""
    text = f"{type(error).__name__}: {error}".splitlines()[0]
    return text[:limit]
