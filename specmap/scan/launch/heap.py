"""The writable state, with a journal: run one arm, take its writes back, run the other, join.

Every write to a :class:`Holder` goes through :meth:`Heap.store`. A *delta* is what an arm
wrote, ``(holder, slot) -> value``.
"""

from __future__ import annotations

from collections.abc import Sequence

from specmap.scan.launch.values import (
    ABSENT,
    Absent,
    Box,
    Choice,
    Environment,
    Holder,
    Instance,
    Lazy,
    Maybe,
    Trace,
    Unknown,
    alternatives,
    choice,
    either,
    is_plain,
    merged,
    reasons_of,
    same,
)

Delta = dict[tuple[Holder, str], object]

MOST_ORIGINS = 6


class Heap:
    """Slots with undo."""

    def __init__(self) -> None:
        self._frames: list[Delta] = []

    @property
    def depth(self) -> int:
        """The number of open frames."""
        return len(self._frames)

    def store(self, holder: Holder, slot: str, value: object) -> None:
        """Write one slot."""
        if self._frames:
            frame = self._frames[-1]
            key = (holder, slot)
            if key not in frame:
                frame[key] = holder.slots.get(slot, ABSENT)
        self._put(holder, slot, value)

    @staticmethod
    def _put(holder: Holder, slot: str, value: object) -> None:
        if isinstance(value, Absent):
            holder.slots.pop(slot, None)
        else:
            holder.slots[slot] = value

    def push(self) -> int:
        """Open a frame and return the depth before it."""
        self._frames.append({})
        return len(self._frames) - 1

    def commit(self, depth: int) -> None:
        """Close all frames above a depth and keep their writes."""
        while len(self._frames) > depth:
            frame = self._frames.pop()
            if self._frames:
                below = self._frames[-1]
                for key, old in frame.items():
                    below.setdefault(key, old)

    def delta(self, depth: int) -> Delta:
        """Return what was written since a depth was left."""
        found: Delta = {}
        for frame in self._frames[depth:]:
            for key in frame:
                if key not in found:
                    found[key] = key[0].slots.get(key[1], ABSENT)
        return found

    def take(self, depth: int) -> Delta:
        """Close all frames above a depth, take their writes back and return them."""
        found = self.delta(depth)
        while len(self._frames) > depth:
            for (holder, slot), old in self._frames.pop().items():
                self._put(holder, slot, old)
        return found

    def apply(self, delta: Delta) -> None:
        """Write a delta."""
        for (holder, slot), value in delta.items():
            self.store(holder, slot, value)

    def join(self, deltas: Sequence[Delta], why: tuple[str, ...]) -> None:
        """Write what holds after any one of several deltas."""
        if len(deltas) == 1:
            self.apply(deltas[0])
            return
        later: list[tuple[Holder, str, list[object]]] = []
        for key in dict.fromkeys(key for delta in deltas for key in delta):
            holder, slot = key
            now = holder.slots.get(slot, ABSENT)
            values = [delta.get(key, now) for delta in deltas]
            kept = [v for v in values if not isinstance(v, Absent)]
            if sum(isinstance(v, Holder) for v in kept) > 1 and not _all_same(kept):
                self.store(holder, slot, kept[0])
                later.append((holder, slot, values))
            else:
                self.store(holder, slot, self._joined(holder, values, why))
        for holder, slot, values in later:
            self.store(holder, slot, self._joined(holder, values, why))

    def _joined(self, holder: Holder, values: list[object], why: tuple[str, ...]) -> object:
        kept = [v for v in values if not isinstance(v, Absent)]
        if not kept:
            return ABSENT
        if isinstance(holder, Box) and holder.kind == "list":
            return self._contents(kept, why)
        result = self.join_values(kept, why)
        optional = isinstance(holder, Environment) or (
            isinstance(holder, Instance) and holder.cls is not None
        )
        if len(kept) < len(values) and optional:
            return result if isinstance(result, Maybe) else Maybe(result, why)
        return result

    def _contents(self, values: list[object], why: tuple[str, ...]) -> object:
        """Join contents of one list: what only some ways appended is there maybe."""
        lists = [v for v in values if isinstance(v, tuple)]
        if len(lists) < len(values) or len({len(items) for items in lists}) == 1:
            return self.join_values(values, why)
        if all(map(is_plain, values)):
            return choice(values, merged(why, *map(reasons_of, values)))
        return self.spread(lists, why)

    def spread(
        self, lists: Sequence[tuple[object, ...]], why: tuple[str, ...]
    ) -> tuple[object, ...]:
        """Return one of several lists as one: what not all begin with is there maybe."""
        shared = 0
        while all(len(i) > shared and same(i[shared], lists[0][shared]) for i in lists):
            shared += 1
        rest = [item for items in lists for item in items[shared:]]
        maybe = [i if isinstance(i, Maybe) else Maybe(i, why) for i in rest]
        return (*lists[0][:shared], *maybe)

    def join_values(self, values: Sequence[object], why: tuple[str, ...]) -> object:
        """Return the value that stands for any one of several."""
        result = values[0]
        for value in values[1:]:
            result = self._pair(result, value, why)
        return result

    def _pair(self, left: object, right: object, why: tuple[str, ...]) -> object:
        if same(left, right):
            return left
        if isinstance(left, Trace) and isinstance(right, Trace):
            return Trace(tuple(sorted({*left.origins, *right.origins})[:MOST_ORIGINS]))
        if isinstance(left, Lazy) or isinstance(right, Lazy):
            return Lazy(lambda: self._pair(_bound(left), _bound(right), why))
        reasons = merged(why, reasons_of(left), reasons_of(right))
        if isinstance(left, Maybe) or isinstance(right, Maybe):
            first = left.value if isinstance(left, Maybe) else left
            second = right.value if isinstance(right, Maybe) else right
            return Maybe(self._pair(first, second, why), reasons)
        if type(left) is Unknown or type(right) is Unknown:
            return Unknown(reasons)
        options = (*alternatives(left), *alternatives(right))
        if all(map(is_plain, options)):
            return choice(options, reasons)
        if isinstance(left, tuple) and isinstance(right, tuple) and len(left) == len(right):
            return tuple(self._pair(a, b, why) for a, b in zip(left, right, strict=True))
        if isinstance(left, Box) and isinstance(right, Box) and left.kind == right.kind:
            return self._boxes(left, right, why)
        if isinstance(left, Instance) and isinstance(right, Instance) and left.cls is right.cls:
            return self._instances(left, right, why)
        if isinstance(left, dict) and isinstance(right, dict):
            return self._dicts(left, right, why)
        return either(options, reasons or ("the ways here disagree",))

    def _boxes(self, left: Box, right: Box, why: tuple[str, ...]) -> Box:
        new = Box(left.kind)
        new.sites = {**right.sites, **left.sites}
        content = self._pair(left.slots.get("", ()), right.slots.get("", ()), why)
        if isinstance(content, Choice):
            content = Unknown(content.reasons)
        self.store(new, "", content)
        return new

    def _dicts(
        self, left: dict[object, object], right: dict[object, object], why: tuple[str, ...]
    ) -> dict[object, object]:
        joined: dict[object, object] = {}
        for key in dict.fromkeys([*left, *right]):
            if key in left and key in right:
                joined[key] = self._pair(left[key], right[key], why)
            else:
                value = left.get(key, right.get(key))
                joined[key] = value if isinstance(value, Maybe) else Maybe(value, why)
        return joined

    def _instances(self, left: Instance, right: Instance, why: tuple[str, ...]) -> object:
        new = Instance(left.cls, left.label, open_=left.open or right.open)
        for slot in dict.fromkeys([*left.slots, *right.slots]):
            pair = [left.slots.get(slot, ABSENT), right.slots.get(slot, ABSENT)]
            self.store(new, slot, self._joined(new, pair, why))
        return new


def _bound(value: object) -> object:
    return value.bind() if isinstance(value, Lazy) else value


def _all_same(values: list[object]) -> bool:
    return all(same(values[0], value) for value in values[1:])
