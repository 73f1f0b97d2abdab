"""Cycles that are like one before: all of their records is the same but the times.

A decode loop makes the same calls in every cycle. What the records of a cycle mean is worked
out once; where they come again, only the times are filled in.
"""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from dataclasses import dataclass

from specmap.trace.cycles import Cycle, Draft
from specmap.trace.spool import Kind, Records

_MOST, _LONGEST = 1024, 4096
_KIND_SHIFT, _KIND_MASK = 32, 0xFFFF
# All that says how a cycle ran. The others come late, or carry a time.
_KINDS = frozenset({Kind.ENTER, Kind.EXIT, Kind.RAISE, Kind.REPLAY, Kind.REASON, Kind.LAUNCHES})


@dataclass(slots=True)
class Repeat:
    """A cycle as it was once; its times count the records from its start.

    ``counted`` are the calls of each target in it, ``uses`` how often it came again.
    """

    calls: array[int]
    sizes: array[int]
    objects: array[int]
    cycle: Cycle
    counted: Counter[int]
    uses: int = 0

    def __len__(self) -> int:
        return len(self.calls)

    def again(self, times: array[int], at: int, number: int, armed: bool) -> Cycle:
        """Return the cycle whose first record is record ``at``."""
        like, start = self.cycle, times[at]
        return Cycle(
            number, start, like.size, like.worker, armed, times[at + like.entry_ns] - start,
            [
                Draft(
                    number, d.worker, d.phase, d.holder, d.scope, times[at + d.start_ns], d.size,
                    d.states, d.reasons, [(times[at + a], times[at + b]) for a, b in d.spans],
                    d.graph_size, d.replays, launches=d.launches,
                )
                for d in like.drafts
            ],
        )  # fmt: skip


class Repeats:
    """The cycles that are known, found by their first record."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int, int], list[Repeat]] = defaultdict(list)
        self._count = 0

    def clear(self) -> None:
        """Forget what was made of cycles; how often each came is kept by who asks before."""
        self._known.clear()
        self._count = 0

    def find(self, records: Records, at: int) -> Repeat | None:
        """Return what is known of the cycle that begins with record ``at``, if anything."""
        some = self._known.get((records.calls[at], records.sizes[at], records.objects[at]))
        for known in some or ():
            end = at + len(known)
            if (
                records.calls[at:end] == known.calls
                and records.sizes[at:end] == known.sizes
                and records.objects[at:end] == known.objects
            ):
                known.uses += 1
                return known
        return None

    def takes(self, records: Records, start: int, end: int) -> bool:
        """Whether the cycle of these records can be kept: it has no time but those of calls."""
        if self._count >= _MOST or end - start > _LONGEST:
            return False
        return all(
            (call >> _KIND_SHIFT) & _KIND_MASK in _KINDS for call in records.calls[start:end]
        )

    def keep(
        self, records: Records, start: int, end: int, cycle: Cycle, counted: Counter[int]
    ) -> None:
        """Keep a cycle that was made of the records from ``start`` to ``end``."""
        self._count += 1
        kept = Repeat(
            records.calls[start:end],
            records.sizes[start:end],
            records.objects[start:end],
            cycle,
            counted,
        )
        self._known[kept.calls[0], kept.sizes[0], kept.objects[0]].append(kept)

    def calls(self) -> Counter[int]:
        """Return the calls of each target in the cycles that came again."""
        total: Counter[int] = Counter()
        for known in (one for some in self._known.values() for one in some):
            for target, count in known.counted.items():
                total[target] += count * known.uses
        return total
