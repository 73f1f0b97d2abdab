"""The agent's own measure of what it costs: armed and disarmed windows in turn."""

from __future__ import annotations

from .records import NONE, OVERHEAD
from .ring import Ring


class Windows:
    """Switches recording every ``cycles`` cycles; entries are recorded in both states."""

    def __init__(self, cycles: int, ring: Ring) -> None:
        self._cycles, self._ring = cycles, ring
        self._armed = True

    def cycle_done(self, number: int) -> None:
        """Begin the next window when ``number`` cycles make a full one."""
        if number % self._cycles:
            return
        self._armed = not self._armed
        self._ring.arm(self._armed, True)
        self._ring.put(0, OVERHEAD, NONE, self._cycles, int(self._armed), number)
