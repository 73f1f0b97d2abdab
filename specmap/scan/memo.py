"""Remembering results of a resolution that goes round in circles.

Objects refer to each other, so looking one thing up can ask for itself again. Such a circle
is solved by iteration: the inner question is answered with what the outer one came to so
far (at first nothing), and the outer question, the head of the circle, is computed again
until it comes to the same. What was concluded from an unfinished head is held only until
the head is done, so that a result does not depend on where the circle was entered.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable
from typing import Any, TypeVar, cast

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)

NEVER = 1 << 60
# Two rounds confirm a result; a circle that does not settle by then only grows conditions.
_ROUNDS = 4

_Mark = tuple[int, Hashable]


class Memo:
    """Tables of results, with the level of the outermost question still open below."""

    def __init__(self) -> None:
        self.lowest = NEVER
        self._level = 0
        self._open: dict[_Mark, int] = {}
        self._seeds: dict[_Mark, Any] = {}
        self._held: dict[_Mark, tuple[Any, int]] = {}
        self._holders: dict[int, list[tuple[dict[Any, Any], Hashable]]] = defaultdict(list)

    def get(self, table: dict[K, T], key: K, compute: Callable[[], T], nothing: T) -> T:
        """Return a remembered result, or compute it; ``nothing`` starts a circle."""
        if key in table:
            return table[key]
        mark = (id(table), key)
        level = self._open.get(mark)
        if level is not None:
            self.lowest = min(self.lowest, level)
            return cast(T, self._seeds.setdefault(mark, nothing))
        held = self._held.get(mark)
        if held is not None:
            self.lowest = min(self.lowest, held[1])
            return cast(T, held[0])
        outer = self.lowest
        found, lowest = self._settle(mark, compute)
        self.lowest = min(outer, lowest)
        if lowest == NEVER:
            table[key] = found
        else:
            self._hold(table, key, found, lowest)
        return found

    def _settle(self, mark: _Mark, compute: Callable[[], T]) -> tuple[T, int]:
        """Compute until the result no longer changes; return it with the level it hangs on."""
        self._level += 1
        self._open[mark] = mine = self._level
        try:
            for _ in range(_ROUNDS):
                self.lowest = NEVER
                found = compute()
                if mark not in self._seeds or self._seeds[mark] == found:
                    break
                self._seeds[mark] = found
                self._drop(mine)
        finally:
            self._level -= 1
            del self._open[mark]
            self._seeds.pop(mark, None)
        lowest = self.lowest if self.lowest < mine else NEVER
        self._pass_on(mine, lowest)
        return found, lowest

    def _hold(self, table: dict[Any, Any], key: Hashable, found: object, level: int) -> None:
        self._held[id(table), key] = (found, level)
        self._holders[level].append((table, key))

    def _drop(self, level: int) -> None:
        """Forget what hung on a head that has come to something else."""
        for table, key in self._holders.pop(level, ()):
            self._held.pop((id(table), key), None)

    def _pass_on(self, level: int, lowest: int) -> None:
        """What hung on a head that is done is final, or hangs on what the head hangs on."""
        for table, key in self._holders.pop(level, ()):
            found, _ = self._held.pop((id(table), key))
            if lowest == NEVER:
                table[key] = found
            else:
                self._hold(table, key, found, lowest)
