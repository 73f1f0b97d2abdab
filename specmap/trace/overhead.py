"""The tracer's own cost: windows of cycles, armed and disarmed in turn."""

from __future__ import annotations

from math import sqrt
from statistics import mean, median

from specmap.codemap.event import Overhead
from specmap.trace.cycles import Cycle
from specmap.trace.tally import Sample

# A cycle of so many times the window's median held a pause, or a prefill.
_PAUSE = 2.0
# Of a normal distribution: its deviation by the median one, and the median's error by the mean's.
_SIGMA, _MEDIAN_ERROR = 1.4826, 1.2533


class Windows:
    """Collects the time of a cycle in each window.

    A cycle's time is from its start to the start of the next. The last of a window is left
    out, because the switch to the next happens in it. Machines drift from cycle to cycle, so
    the same cycles in shorter windows tell more. A window's time is a mean, not a median, which
    would not see what the tracer does in one cycle of eight.
    """

    def __init__(self) -> None:
        self._means: list[tuple[bool, float]] = []
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
        self._means += self._open()
        self._times = Sample()

    def _open(self) -> list[tuple[bool, float]]:
        """Return the window that is open, if a cycle in it has a time."""
        if self._armed is None or not self._times.values:
            return []
        limit = _PAUSE * median(self._times.values)
        return [(self._armed, mean(time for time in self._times.values if time <= limit))]

    def overhead(self) -> Overhead | None:
        """Return cost and A/A null; None with fewer than five windows.

        A cycle grows with the sequences in its batch. That trend is in a window as in the mean
        of the two at the same distance before and after it, so it cancels.
        """
        found = [*self._means, *self._open()]
        costs, nulls = (_against(found, apart) for apart in (1, 2))
        if not costs or not nulls:
            return None
        return Overhead(len(costs), median(costs), _error(costs), median(nulls), _error(nulls))


def _against(windows: list[tuple[bool, float]], apart: int) -> list[float]:
    """Return what being armed adds to each window, next to the mean of those ``apart`` from it.

    Cycles scatter more to one side, which makes a window look shorter than such a mean; with
    disarmed windows the other way round that cancels, in the null as in the cost. Windows next
    to each other are of two kinds, or one without a time was between them: then none is compared.
    """
    trios = zip(windows, windows[apart:], windows[2 * apart :], strict=False)
    more = (
        (armed, time / ((before + after) / 2) - 1)
        for (kind, before), (armed, time), (other, after) in trios
        if kind is other and (kind is armed) is (apart == 2)
    )
    return [part if armed else -part / (1 + part) for armed, part in more]


def _error(values: list[float]) -> float:
    """Return the standard error of the median, from the median deviation."""
    middle = median(values)
    deviation = _SIGMA * median(abs(value - middle) for value in values)
    return float(_MEDIAN_ERROR * deviation / sqrt(len(values)))
