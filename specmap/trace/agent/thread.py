"""The agent's own thread: nothing is written on the scheduler's."""

from __future__ import annotations

import threading
from collections.abc import Callable

from .faults import line_of, say

INTERVAL_S = 0.15


class Service:
    """Calls ``turn``, which waits ``INTERVAL_S`` itself, until stopped."""

    def __init__(self, turn: Callable[[], None]) -> None:
        self._turn, self._stopped = turn, False
        self._thread = threading.Thread(target=self._run, name="specmap", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Ask the thread to end after its turn; does not wait."""
        self._stopped = True

    def _run(self) -> None:
        while not self._stopped:
            try:
                self._turn()
            except Exception as error:
                say(f"the trace's thread ended: {line_of(error)}")
                return
