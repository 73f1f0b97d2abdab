"""Records -> passes: which phase each forward belonged to, and how it ran.

One machine reads one rank, record by record. It keeps the open calls, and the passes of the
last cycles, because GPU times and accepted tokens arrive some cycles late.
"""

from __future__ import annotations

import copy
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from specmap.codemap.event import Launches, State
from specmap.codemap.verdict import PhaseName, SinkKind
from specmap.trace.cycles import Cycle, Draft
from specmap.trace.plan import Role, WrapPlan
from specmap.trace.repeats import Repeat, Repeats
from specmap.trace.resolve import Place, Resolver
from specmap.trace.spool import Kind, Record, Records

_KINDS = frozenset(Kind)
LATE_CYCLES = 128
"""How many cycles a pass waits for its GPU time and its accepted tokens."""

_NONE = Launches()


@dataclass(slots=True)
class _Frame:
    """An open call. ``drafts`` are passes that it belongs to, True where it times them."""

    target: int
    start_ns: int
    mode: int
    size: int
    object: int
    sink: SinkKind | None
    replays: int = 0
    launches: Launches = _NONE
    inner: bool = False
    captured: bool = False
    drafts: list[tuple[Draft, bool]] = field(default_factory=list)


@dataclass(slots=True)
class Events:
    """What one batch of records brought besides passes.

    ``syncs`` are ``(site, phase, blocked_ns)``, ``accepts`` ``(requests, tokens)``;
    ``senseless`` counts records of no kind that there is; ``salvaged`` says that all that a
    killed rank had in memory stands before.
    """

    cycles: list[Cycle] = field(default_factory=list)
    syncs: list[tuple[int, str, int]] = field(default_factory=list)
    accepts: list[tuple[int, int]] = field(default_factory=list)
    captures: int = 0
    dropped: int = 0
    senseless: int = 0
    salvaged: bool = False


class Machine:
    """Turns the records of one rank into cycles and passes; see :meth:`feed`."""

    def __init__(self, plan: WrapPlan, idle_modes: tuple[str, ...] = ()) -> None:
        self._sinks = {t.id: t.sink for t in plan.targets if Role.SINK in t.roles}
        self._entries = {t.id for t in plan.targets if Role.ENTRY in t.roles}
        self._scopes = {p.scope: p.name for w in plan.workers for p in w.phases}
        self._resolver = Resolver(plan, idle_modes)
        self._stack: list[_Frame] = []
        self._cycle: Cycle | None = None
        self._next = 0
        self._capturing = 0
        self._armed, self._counting = True, False
        self._reasons: list[tuple[int, int]] = []
        self._late: deque[Cycle] = deque()
        self._verified: deque[Draft] = deque(maxlen=LATE_CYCLES)
        self._whole = True
        self._repeats = Repeats()
        self.first_loss: int | None = None
        self._calls: Counter[int] = Counter()

    @property
    def calls(self) -> Counter[int]:
        """The calls of each target so far."""
        return self._calls + self._repeats.calls()

    def feed(
        self,
        records: Records,
        header: Mapping[str, Any],
        places: list[tuple[int, str]] | None = None,
    ) -> Events:
        """Take records in order; return what they completed.

        The passes of a cycle are in :attr:`Cycle.drafts` and may still be written to; see
        :meth:`settled`. ``places`` gets the cycle (-1: outside) and the phase of each record.
        """
        if self._resolver.learn(header):
            self._forget_repeats()
        self._whole = self._whole and header.get("armed_from_start") is not False
        events = Events()
        at, start = 0, -1
        while at < len(records):
            known = self._known(records, at) if places is None else None
            if known is not None:
                self._again(known, records, at, events)
                at += len(known)
                continue
            record = records[at]
            if places is not None:
                places.append(self._here(record[1], record[2]))
            before = self._cycle
            self._take(record, events)
            at += 1
            if before is None and self._cycle is not None:
                start = at - 1
            elif before is not None and self._cycle is None and start >= 0 and places is None:
                self._keep(records, start, at)
                start = -1
        return events

    def _forget_repeats(self) -> None:
        self._calls = self.calls
        self._repeats.clear()

    def _known(self, records: Records, at: int) -> Repeat | None:
        """Return the cycle that begins here, if one like it was before."""
        between = self._cycle is None and not self._capturing
        return self._repeats.find(records, at) if between else None

    def _again(self, known: Repeat, records: Records, at: int, events: Events) -> None:
        """Take the records of a cycle that is known, in one step."""
        cycle = known.again(records.times, at, self._next, self._armed)
        self._next += 1
        self._stack.clear()
        self._reasons.clear()
        if self._whole:
            self._verified += (d for d in cycle.drafts if d.phase == PhaseName.VERIFY)
        self._late.append(cycle)
        events.cycles.append(cycle)

    def _keep(self, records: Records, start: int, end: int) -> None:
        """Work out what a cycle's records mean apart from their times, for when they come again.

        They are taken once more by a machine that is at the same point, each with its number
        for a time.
        """
        if self._capturing or not self._repeats.takes(records, start, end):
            return
        twin = copy.copy(self)
        twin._stack, twin._reasons, twin._calls = [], [], Counter()
        twin._late, twin._verified = deque(), deque()
        events = Events()
        for number in range(start, end):
            twin._take((number - start, *records[number][1:]), events)
        if len(events.cycles) == 1 and twin._cycle is None:
            self._repeats.keep(records, start, end, events.cycles[0], twin._calls)

    def _take(self, record: Record, events: Events) -> None:
        t_ns, target, kind, mode, size, value, place = record
        if kind == Kind.ENTER:
            self._calls[target] += 1
            self._enter(_Frame(target, t_ns, mode, size, place, self._sinks.get(target)))
        elif kind in (Kind.EXIT, Kind.RAISE):
            self._leave(target, t_ns, value, events)
        elif kind == Kind.REPLAY:
            self._replayed()
        elif kind == Kind.REASON:
            if self._cycle is not None:
                self._reasons.append((target, value))
        else:
            self._other(kind, target, size, value, place, events)

    def settled(self, final: bool = False) -> Iterator[Cycle]:
        """Yield the cycles that nothing is added to any more; with ``final`` all of them."""
        while self._late and (final or self._late[0].number + LATE_CYCLES < self._next):
            yield self._late.popleft()

    def pending(self) -> Iterator[Cycle]:
        """Yield the cycles that :meth:`settled` did not yield yet."""
        return iter(self._late)

    def _enter(self, frame: _Frame) -> None:
        if frame.target in self._entries and self._cycle is None:
            self._stack.clear()
            self._reasons.clear()
            worker = self._resolver.worker(frame.target, frame.object)
            self._cycle = Cycle(self._next, frame.start_ns, frame.size, worker, self._armed)
            self._next += 1
        elif frame.target in self._scopes:
            self._reasons.clear()
        frame.captured = self._capturing > 0
        self._stack.append(frame)

    def _leave(self, target: int, t_ns: int, value: int, events: Events) -> None:
        at = next((i for i in range(len(self._stack) - 1, -1, -1)
                   if self._stack[i].target == target), None)  # fmt: skip
        if at is None:
            return
        del self._stack[at + 1 :]
        frame = self._stack[at]
        if frame.sink is not None:
            self._sink_done(frame, value)
        for draft, timed in frame.drafts:
            if timed:
                draft.spans.append((frame.start_ns, t_ns))
                if self._counting:
                    draft.launches = (draft.launches or _NONE) + frame.launches
            if value >= 0 and draft.graph_size < 0 and State.EAGER not in draft.states:
                draft.graph_size = value
        self._stack.pop()
        if at == 0 and self._cycle is not None and target in self._entries:
            self._cycle.entry_ns = t_ns - self._cycle.start_ns
            self._late.append(self._cycle)
            events.cycles.append(self._cycle)
            self._cycle = None

    def _sink_done(self, frame: _Frame, value: int) -> None:
        outer = [f for f in self._stack[:-1] if f.sink is not None]
        for each in outer:
            each.inner = True
        if frame.inner or self._cycle is None:
            return
        state = _state(frame, self._capturing > 0)
        place = self._place()
        draft = self._draft(place)
        draft.states.append(state)
        draft.replays += frame.replays
        if state is State.EAGER and not draft.reasons:
            draft.reasons = list(self._reasons)
        if state is not State.EAGER and value >= 0 and draft.graph_size < 0:
            draft.graph_size = value
        self._reasons.clear()

    def _place(self) -> Place:
        assert self._cycle is not None
        mode = next((f.mode for f in reversed(self._stack) if f.mode >= 0), -1)
        path = tuple(frame.target for frame in self._stack)
        return self._resolver.place(self._cycle.worker, path, mode)

    def _draft(self, place: Place) -> Draft:
        """Return the pass that the forward on top of the stack belongs to."""
        assert self._cycle is not None
        below = self._stack[place.depth + 1 :] or self._stack[-1:]
        scoped = (f for f in self._stack[1:] if f.target == place.scope)
        timing = next(scoped, below[0] if place.depth == 0 else self._stack[place.depth])
        last = self._cycle.drafts[-1] if self._cycle.drafts else None
        if last is not None and last.phase == place.phase and last.holder == place.holder:
            draft = last
        else:
            sizes = [f.size for f in (*below, *reversed(self._stack[: place.depth + 1]))]
            draft = Draft(
                self._cycle.number, self._cycle.worker, place.phase, place.holder, place.scope,
                timing.start_ns, next((size for size in sizes if size >= 0), -1),
            )  # fmt: skip
            self._cycle.drafts.append(draft)
            if place.phase == PhaseName.VERIFY and self._whole:
                self._verified.append(draft)
        for frame in {id(f): f for f in (timing, *below)}.values():
            if all(known is not draft for known, _ in frame.drafts):
                frame.drafts.append((draft, frame is timing))
        return draft

    def _replayed(self) -> None:
        sink = next((f for f in reversed(self._stack) if f.sink is not None), None)
        if sink is not None:
            sink.replays += 1

    def _other(
        self, kind: int, target: int, size: int, value: int, place: int, events: Events
    ) -> None:
        if not _sensible(kind, size, value, place):
            events.senseless += 1
        elif kind == Kind.CAPTURE_BEGIN:
            self._capturing += 1
            events.captures += 1
        elif kind == Kind.CAPTURE_END:
            self._capturing = max(0, self._capturing - 1)
        elif kind == Kind.SYNC:
            events.syncs.append((target, self._phase_here(), value))
        elif kind == Kind.GPU_SPAN:
            self._gpu(place, target, value)
        elif kind == Kind.LAUNCHES:
            for frame in self._stack:
                frame.launches += Launches(size, value, place)
        elif kind == Kind.COUNTING:
            self._counting = value == 1
            self._forget_repeats()
        elif kind == Kind.ACCEPT:
            events.accepts.append((size, value))
            self._accepted(size, value)
        elif kind == Kind.DROPS and value > 0:
            self._lost(value, events)
        elif kind == Kind.OVERHEAD:
            self._whole = False
            self._armed = value == 1
        elif kind in (Kind.ARM, Kind.DISARM):
            self._forget()
            self._next = max(self._next, place)
        elif kind == Kind.SALVAGED:
            events.salvaged = True

    def _here(self, target: int, kind: int) -> tuple[int, str]:
        if self._cycle is None:
            begins = kind == Kind.ENTER and target in self._entries
            return self._next if begins else -1, ""
        enters = self._scopes.get(target, "") if target not in self._entries else ""
        return self._cycle.number, (enters if kind == Kind.ENTER else "") or self._phase_here()

    def _phase_here(self) -> str:
        held = (f.target for f in reversed(self._stack) if f.target not in self._entries)
        return next((self._scopes[t] for t in held if t in self._scopes), "")

    def _gpu(self, cycle: int, scope: int, value: int) -> None:
        """Give a GPU time to its pass; that of an entry only where the cycle has one pass."""
        known = next((c for c in reversed(self._late) if c.number == cycle), None)
        if known is None or (scope in self._entries and len(known.drafts) != 1):
            return
        for draft in known.drafts:
            if draft.scope == scope:
                draft.gpu_ns = (draft.gpu_ns or 0) + value
                return

    def _accepted(self, requests: int, tokens: int) -> None:
        """Give the count to the oldest verify pass without one; results come in their order."""
        while self._verified:
            draft = self._verified.popleft()
            if draft.size in (-1, requests):
                draft.accepted = tokens
                return

    def _lost(self, count: int, events: Events) -> None:
        """Forget what was open: calls may have begun or ended in the gap."""
        events.dropped += count
        self._whole = False
        if self.first_loss is None:
            self.first_loss = self._cycle.number if self._cycle is not None else self._next
        self._forget()

    def _forget(self) -> None:
        self._stack.clear()
        self._reasons.clear()
        self._verified.clear()
        self._cycle = None
        self._capturing = 0


def _sensible(kind: int, size: int, value: int, place: int) -> bool:
    """Whether a record says what an agent can have written: no time and no count below zero."""
    if kind == Kind.LAUNCHES:
        return size >= 0 and 0 <= place <= value
    return kind in _KINDS and (kind != Kind.GPU_SPAN or value >= 0)


def _state(frame: _Frame, capturing: bool) -> State:
    if capturing or frame.captured:
        return State.CAPTURE
    if frame.sink is SinkKind.PIECEWISE or frame.replays > 1:
        return State.PIECEWISE
    if frame.sink is SinkKind.GRAPH:
        return State.GRAPH
    return State.PIECEWISE if frame.replays else State.EAGER
