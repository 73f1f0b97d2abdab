"""A number for every cycle, kept only where it changes."""

from __future__ import annotations

from array import array
from collections.abc import Iterator


class Series:
    """Numbers by cycle, from 0 on; memory grows with their changes, not with the cycles."""

    def __init__(self) -> None:
        self._firsts = array("Q")
        self._values = array("I")
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def put(self, cycle: int, value: int, between: int) -> None:
        """Give ``cycle`` its number, and ``between`` to those that were passed over."""
        if cycle > self._length:
            self._change(self._length, between)
        self._change(cycle, value)
        self._length = cycle + 1

    def _change(self, cycle: int, value: int) -> None:
        if not self._values or self._values[-1] != value:
            self._firsts.append(cycle)
            self._values.append(value)

    def changes(self) -> Iterator[tuple[int, int]]:
        """Yield the cycles at which the number changes, with the new number."""
        return zip(self._firsts, self._values, strict=True)
