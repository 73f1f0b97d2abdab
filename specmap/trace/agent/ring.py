"""The ring in Python: same records and same page as the C ring, at about ten times the cost."""

from __future__ import annotations

import functools
import mmap
import os
from collections.abc import Callable
from threading import get_ident
from time import monotonic_ns
from typing import Any, Protocol

from .faults import line_of, say
from .records import (
    CYCLES,
    DROPPED,
    ENTER,
    EXIT,
    FOREIGN,
    HEAD,
    NONE,
    PAGE_BYTES,
    RAISE,
    RECORD,
    TAIL,
)
from .shape import NOWHERE, Shape

AnyCall = Callable[..., Any]
# Mode, size and object of an open call, and the batch of the forward around it.
Entered = tuple[int, int, int, Any]
_pack, _BYTES = RECORD.pack_into, RECORD.size
_MOST_KNOWN = 1024
_INT32, _INT16, _UINT64 = (1 << 31) - 1, (1 << 15) - 1, (1 << 64) - 1


class Ring(Protocol):
    """What the agent needs of a ring, in C or in Python.

    ``arm(calls, entries)`` switches recording, entries apart, since they are recorded in
    disarmed windows too. ``wake`` is called once by the first call that finds the ring
    disarmed, ``cycle_done`` after every outermost entry, ``seen`` with each new object
    on which an entry or a sink is called. ``capturing`` counts the captures under way.
    """

    kind: str
    capturing: int

    def attach(self, memory: mmap.mmap, records: int) -> None:
        """Write into this memory from now on."""

    def arm(self, calls: bool, entries: bool) -> None:
        """Switch recording."""

    def recording(self) -> bool:
        """Return whether calls are recorded; the first question wakes the agent."""

    def hooks(
        self,
        wake: Callable[[], None] | None,
        cycle_done: Callable[[], None] | None,
        seen: Callable[[Any], None] | None,
    ) -> None:
        """Set the three callbacks; None takes one away."""

    def put(self, target: int, kind: int, mode: int, size: int, value: int, obj: int) -> None:
        """Append a record, from the scheduler's thread; count it as dropped when full."""

    def launches(self, names: tuple[bytes, ...] | None) -> tuple[int, int] | None:
        """Count launches; return addresses: what CUPTI is to call, and with what.

        ``names`` are parts of the names of collective kernels; None: count no more. Returns
        None where the ring cannot.
        """

    def wrap(self, function: AnyCall, shape: Shape) -> AnyCall:
        """Return ``function`` with its calls recorded."""


class PythonRing:
    """A ring of records, written by one thread, read by the spool's thread."""

    kind = "python"

    def __init__(self) -> None:
        self.calls = self.entries = self.marking = False
        self.wake: Callable[[], None] | None = None
        self.cycle_done: Callable[[], None] | None = None
        self.seen: Callable[[Any], None] | None = None
        self._known: set[int] = set()
        self.capturing = 0
        self.owner = self.depth = 0
        self.batch: Any = None
        self._map: mmap.mmap | None = None
        self._words: memoryview | None = None
        self._mask = self._records = self._head = self._tail = 0

    def attach(self, memory: mmap.mmap, records: int) -> None:
        """Write into this memory from now on."""
        self._map, self._records, self._mask = memory, records, records - 1
        self._words = memoryview(memory)[:PAGE_BYTES].cast("Q")
        self._head, self._tail = self._words[HEAD], self._words[TAIL]

    def arm(self, calls: bool, entries: bool) -> None:
        """Switch recording."""
        ready = self._words is not None
        self.calls, self.entries = calls and ready, entries and ready
        if not entries:
            self.depth = 0

    def recording(self) -> bool:
        """Return whether calls are recorded; the first question wakes the agent."""
        return self.calls or (self.wake is not None and self._woken())

    def hooks(
        self,
        wake: Callable[[], None] | None,
        cycle_done: Callable[[], None] | None,
        seen: Callable[[Any], None] | None,
    ) -> None:
        """Set the three callbacks; None takes one away."""
        self.wake, self.cycle_done, self.seen = wake, cycle_done, seen

    def put(self, target: int, kind: int, mode: int, size: int, value: int, obj: int) -> None:
        """Append a record, from the scheduler's thread; count it as dropped when full."""
        if get_ident() != self.owner:
            if self.owner:
                self._count(FOREIGN)
                return
            self.owner = get_ident()
        value = max(-_INT32, min(value, _INT32))
        self._append(target, kind, mode, size, value, obj & _UINT64)

    def launches(self, names: tuple[bytes, ...] | None) -> None:
        """Return nothing: Python code in every launch would cost more than the launch."""

    def _append(self, target: int, kind: int, mode: int, size: int, value: int, obj: int) -> None:
        words, memory, head = self._words, self._map, self._head
        if words is None or memory is None:
            return
        if head - self._tail >= self._records:
            self._tail = words[TAIL]
            if head - self._tail >= self._records:
                words[DROPPED] += 1
                return
        position = PAGE_BYTES + (head & self._mask) * _BYTES
        _pack(memory, position, monotonic_ns(), target, kind, mode, size, value, obj)
        self._head = words[HEAD] = head + 1

    def _count(self, counter: int) -> None:
        if self._words is not None:
            self._words[counter] += 1

    def wrap(self, function: AnyCall, shape: Shape) -> AnyCall:
        """Return ``function`` with its calls recorded."""
        ring, entry = self, shape.entry
        if shape.mark:
            return self._marked(function, shape)

        @functools.wraps(function)
        def traced(*args: Any, **kwargs: Any) -> Any:
            if not (ring.entries if entry else ring.calls):
                if ring.wake is None or not ring._woken():
                    return function(*args, **kwargs)
            entered = ring._enter(shape, args, kwargs)
            try:
                result = function(*args, **kwargs)
            except BaseException:
                ring._leave(shape, RAISE, entered, args)
                raise
            ring._leave(shape, EXIT, entered, args)
            return result

        return traced

    def _marked(self, function: AnyCall, shape: Shape) -> AnyCall:
        """Return ``function`` with one record a call; none for a call inside it."""
        ring = self

        @functools.wraps(function)
        def marked(*args: Any, **kwargs: Any) -> Any:
            if ring.marking or not ring.recording():
                return function(*args, **kwargs)
            size, value, obj = _carried(shape, args, kwargs)
            ring.put(shape.target, shape.mark, NONE, size, value, obj)
            ring.marking = True
            try:
                return function(*args, **kwargs)
            finally:
                ring.marking = False

        return marked

    def _woken(self) -> bool:
        """Call the wake hook, once; return whether calls are recorded now."""
        wake, self.wake = self.wake, None
        if wake is not None:
            wake()
        return self.calls

    def _enter(self, shape: Shape, args: Any, kwargs: Any) -> Entered | None:
        """Record the start of a call; return what its end needs, None when not ours."""
        try:
            return self._entered(shape, args, kwargs)
        except Exception as error:
            self._fault(error)
            return None

    def _entered(self, shape: Shape, args: Any, kwargs: Any) -> Entered | None:
        thread = get_ident()
        if thread != self.owner:
            if self.owner and not (shape.entry and self.depth == 0):
                self._count(FOREIGN)
                return None
            self.owner = thread
        batch = None
        if shape.position != NOWHERE:
            if shape.position < len(args):
                batch = args[shape.position]
            else:
                batch = kwargs.get(shape.keyword)
        mode = size = NONE
        outer = self.batch
        if batch is not None and batch is not outer:
            mode, size = small(_attribute(batch, shape.mode)), size_of(batch, shape.sizes)
        obj = id(args[0]) if shape.bound and args else 0
        if obj and obj not in self._known and (shape.entry or shape.keys):
            if len(self._known) < _MOST_KNOWN:
                self._known.add(obj)
            if self.seen is not None:
                self.seen(args[0])
        self._append(shape.target, ENTER, mode, size, NONE, obj)
        if shape.keys and batch is not None:
            self.batch = batch
        if shape.entry:
            self.depth += 1
        return mode, size, obj, outer

    def _leave(self, shape: Shape, kind: int, entered: Entered | None, args: Any) -> None:
        """Record the end of a call whose start was recorded."""
        if entered is None:
            return
        try:
            self._left(shape, kind, entered, args)
        except Exception as error:
            self._fault(error)

    def _left(self, shape: Shape, kind: int, entered: Entered, args: Any) -> None:
        mode, size, obj, self.batch = entered
        if self.entries if shape.entry else self.calls:
            looks = kind == EXIT and shape.keys and args
            value = size_of(args[0], shape.keys) if looks else NONE
            self._append(shape.target, kind, mode, size, value, obj)
        if shape.entry and self.depth:
            self.depth -= 1
            if self.depth == 0:
                self._count(CYCLES)
                if self.cycle_done is not None:
                    self.cycle_done()

    def _fault(self, error: Exception) -> None:
        """Stop recording for good: the server goes on without the agent."""
        self.calls = self.entries = False
        say(f"recording stopped in process {os.getpid()}: {line_of(error)}")


def _carried(shape: Shape, args: Any, kwargs: Any) -> tuple[int, int, int]:
    """Return size, value and object of a mark."""
    if not shape.counts:
        return NONE, NONE, id(args[0]) if args else 0
    given = [
        args[position] if 0 <= position < len(args) else kwargs.get(name)
        for position, name in shape.counts
    ]
    size, *parts = [one if type(one) is int and 0 <= one <= _INT32 else NONE for one in given]
    known = bool(parts) and NONE not in parts and sum(parts) <= _INT32
    return size, sum(parts) if known else NONE, 0


def _attribute(thing: Any, name: str) -> Any:
    """Return an attribute; None when there is none or reading it fails."""
    try:
        return getattr(thing, name, None)
    except Exception:
        return None


def small(value: Any) -> int:
    """Return an int that fits a record's mode (an enum's value too), else -1."""
    if not isinstance(value, int):
        value = _attribute(value, "value")
    fits = isinstance(value, int) and -_INT16 <= value <= _INT16
    return int(value) if fits else NONE


def size_of(thing: Any, names: tuple[str, ...]) -> int:
    """Return the first size among attributes, an int or a length; else what a method returns."""
    for calls in (False, True):
        for name in names:
            try:
                value = getattr(thing, name, None)
                if type(value) is not int:
                    value = _counted(value, calls)
            except Exception:
                continue
            if value is not None and 0 <= value <= _INT32:
                return value
    return NONE


def _counted(value: Any, calls: bool) -> int | None:
    if callable(value):
        value = value() if calls else None
    if isinstance(value, (list, tuple, dict, set)):
        return len(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
