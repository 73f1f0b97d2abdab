"""Captured batch sizes, and whether a batch is within them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specmap.verdicts import sizetests

SizeTest = str | tuple[object, ...]
"""``at most`` or ``one of`` of the captured sizes, else a test of :mod:`sizetests`."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """What is captured: ``known`` ascending, or None; ``least`` is captured in any case.

    ``reasons`` name what would settle an unknown list.
    """

    known: tuple[int, ...] | None
    least: tuple[int, ...] = ()
    reasons: tuple[str, ...] = ()

    @property
    def largest(self) -> int | None:
        """The largest captured size, or None where it is not known."""
        return max(self.known) if self.known else None

    def holds(self, how: SizeTest, size: int) -> bool | None:
        """Return whether a batch passes a test of its size.

        A runner with graphs captures something, so a batch of one is at most the largest.
        """
        if not isinstance(how, str):
            return sizetests.holds(how, size)
        if self.known is not None:
            return size in self.known if how == "one of" else size <= max(self.known, default=0)
        if how == "one of":
            return True if size in self.least else None
        return True if size <= max(self.least, default=1) else None

    def numbers(self, how: SizeTest, size: int) -> str:
        """Say a batch size against the captured ones."""
        if not isinstance(how, str):
            return f"bs {size}"
        if self.known is None:
            reach = f" (at least {max(self.least)})" if self.least else ""
            return f"bs {size}, largest captured not known{reach}"
        if how == "one of":
            return f"bs {size} {'' if size in self.known else 'not '}captured"
        largest = max(self.known, default=0)
        return f"bs {size} {'<=' if size <= largest else '>'} largest captured {largest}"

    def steps(
        self, top: int | None, tests: Iterable[SizeTest] = (), asked: int = 1
    ) -> tuple[int, ...]:
        """Return one batch size for each stretch in which no test changes, ascending from 1.

        ``tests`` are those that the sizes are asked for. One that may go on changing is followed
        up to ``top``, or past the largest number that anybody names, ``asked`` among them.
        """
        edges = {1}
        for size in self.known if self.known is not None else self.least or (1,):
            edges |= {size, size + 1}
        computed = [test for test in tests if not isinstance(test, str)]
        named = [n for test in computed for n in sizetests.numbers(test)]
        if computed:
            edges |= set(range(1, (top or 2 * max(*edges, *named, asked)) + 1))
        return tuple(sorted(e for e in edges if e >= 1 and (top is None or e <= top)))
