"""The tracer's own cost: windows of cycles, armed and disarmed in turn."""

from __future__ import annotations

from math import sqrt
from statistics import median

from specmap.codemap.event import Overhead
from specmap.trace.cycles import Cycle
from specmap.trace.tally import Sample

_LEAST_CYCLES = 4
# Of a normal distribution: its deviation by the median one, and the median's error by the mean's.
_SIGMA, _MEDIAN_ERROR = 1.4826, 1.2533


class Windows:
    """Collects the time of a cycle in each window.

    A cycle's time is from its start to the start of the next. The first of a window is left
    out, because arming happens in it.
    """

    def __init__(self) -> None:
        self._medians: list[tuple[bool, int]] = []
        self._armed: bool | None = None
        self._times = Sample()
        self._previous: Cycle | None = None

    def add(self, cycle: Cycle) -> None:
        """Take the next cycle of the rank."""
        before = self._previous
        self._previous = cycle
        if cycle.armed is not self._armed:
            self._close()
            self._armed = cycle.armed
            return
        if before is not None and before.number + 1 == cycle.number:
            self._times.add(cycle.start_ns - before.start_ns)

    def _close(self) -> None:
        self._medians += self._open()
        self._times = Sample()

    def _open(self) -> list[tuple[bool, int]]:
        """Return the window that is open, if it is long enough."""
        time_ns = self._times.median()
        if self._armed is None or not time_ns or self._times.count < _LEAST_CYCLES:
            return []
        return [(self._armed, time_ns)]

    def overhead(self) -> Overhead | None:
        """Return cost and A/A null; None with fewer than five windows.

        A cycle grows with the sequences in its batch. That trend is in a window as in the mean
        of the two at the same distance before and after it, so it cancels.
        """
        found = [*self._medians, *self._open()]
        costs = [off if armed else -off / (1 + off) for armed, off in _against(found, 1)]
        nulls = [off for _, off in _against(found, 2)]
        if not costs or not nulls:
            return None
        return Overhead(len(costs), median(costs), _error(costs), median(nulls), _error(nulls))


def _against(windows: list[tuple[bool, int]], apart: int) -> list[tuple[bool, float]]:
    """Return by how much each window is longer than the mean of those ``apart`` from it.

    Windows next to each other are of two kinds, or one was too short: then none is compared.
    """
    trios = zip(windows, windows[apart:], windows[2 * apart :], strict=False)
    return [
        (armed, time / ((before + after) / 2) - 1)
        for (kind, before), (armed, time), (other, after) in trios
        if kind is other and (kind is armed) is (apart == 2)
    ]


def _error(values: list[float]) -> float:
    """Return the standard error of the median, from the median deviation."""
    middle = median(values)
    deviation = _SIGMA * median(abs(value - middle) for value in values)
    return float(_MEDIAN_ERROR * deviation / sqrt(len(values)))
