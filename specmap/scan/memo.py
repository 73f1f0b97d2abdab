"""Remembering results of a resolution that goes round in circles.

Objects refer to each other, so looking one thing up can ask for itself again; the inner
question is then answered with nothing. What was concluded from such an answer is only
tentative: it depends on where the circle was entered. A tentative result is not kept, unless
the same question has come out tentative several times (then the circle is real).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TypeVar

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)

NEVER = 1 << 60
_TRIES = 2


class Memo:
    """Tables of results, with the level of the outermost question still open below."""

    def __init__(self) -> None:
        self.lowest = NEVER
        self._level = 0
        self._open: dict[tuple[int, Hashable], int] = {}
        self._tries: dict[tuple[int, Hashable], int] = {}

    def get(self, table: dict[K, T], key: K, compute: Callable[[], T], nothing: T) -> T:
        """Return a remembered result, or compute it; ``nothing`` answers an open question."""
        if key in table:
            return table[key]
        mark = (id(table), key)
        level = self._open.get(mark)
        if level is not None:
            self.lowest = min(self.lowest, level)
            return nothing
        self._level += 1
        self._open[mark] = mine = self._level
        outer, self.lowest = self.lowest, NEVER
        try:
            found = compute()
        finally:
            self._level -= 1
            del self._open[mark]
            tentative = self.lowest < mine
            self.lowest = min(outer, self.lowest if tentative else NEVER)
        if tentative:
            self._tries[mark] = self._tries.get(mark, 0) + 1
        if not tentative or self._tries[mark] >= _TRIES:
            table[key] = found
        return found
