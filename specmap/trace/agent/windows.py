"""The agent's own measure of what it costs: armed and disarmed windows in turn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .records import NONE, OVERHEAD
from .ring import Ring

if TYPE_CHECKING:
    from .launches import Launches


class Windows:
    """Switches recording every ``cycles`` cycles; entries are recorded in both states."""

    def __init__(self, cycles: int, ring: Ring, launches: Launches | None = None) -> None:
        self._cycles, self._ring, self._launches = cycles, ring, launches
        self._armed = True

    def cycle_done(self, number: int) -> None:
        """Begin the next window when ``number`` cycles make a full one."""
        if number % self._cycles:
            return
        self._armed = not self._armed
        self._ring.arm(self._armed, True)
        if self._launches is not None:
            self._launches.switch(self._armed)
        self._ring.put(0, OVERHEAD, NONE, self._cycles, int(self._armed), number)
