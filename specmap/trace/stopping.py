"""Signals while a trace runs: they ask for an end, and never tear a run apart."""

from __future__ import annotations

import signal
from collections.abc import Callable
from types import FrameType
from typing import Any

_HEEDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Signals:
    """Keeps what the user sent, while it is the current context.

    ``came`` holds the signals in order: who presses Ctrl-C again means it.
    """

    def __init__(self) -> None:
        self.came: list[signal.Signals] = []
        self._before: dict[signal.Signals, Callable[[int, FrameType | None], Any] | int | None] = {}

    def __enter__(self) -> Signals:
        for number in _HEEDED:
            self._before[number] = signal.signal(number, self._heed)
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _heed(self, number: int, _: FrameType | None) -> None:
        self.came.append(signal.Signals(number))
