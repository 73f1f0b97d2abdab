"""Cycles and their passes, while they are still written to."""

from __future__ import annotations

from dataclasses import dataclass, field

from specmap.codemap.event import UNKNOWN_PHASE, Launches, Pass, State


@dataclass(slots=True)
class Draft:
    """A pass that is still written to; ``spans`` are start and end of the calls that time it."""

    cycle: int
    worker: str
    phase: str
    holder: int
    scope: int
    start_ns: int
    size: int
    states: list[State] = field(default_factory=list)
    reasons: list[tuple[int, int]] = field(default_factory=list)
    spans: list[tuple[int, int]] = field(default_factory=list)
    graph_size: int = -1
    replays: int = 0
    gpu_ns: int | None = None
    accepted: int | None = None
    launches: Launches | None = None

    @property
    def state(self) -> State:
        """The state of all its forwards together."""
        if len(self.states) == 1:
            return self.states[0]
        if State.CAPTURE in self.states:
            return State.CAPTURE
        return self.states[0] if len(set(self.states)) == 1 else State.PARTIAL

    @property
    def cpu_ns(self) -> int:
        """The CPU time of the calls that time it."""
        return sum(end - start for start, end in self.spans)


@dataclass(slots=True)
class Cycle:
    """One outermost call of an entry; ``armed`` is false where only entries were recorded."""

    number: int
    start_ns: int
    size: int
    worker: str
    armed: bool = True
    entry_ns: int = 0
    drafts: list[Draft] = field(default_factory=list)


def frozen(draft: Draft, reason: str) -> Pass:
    """Return a pass as it is now."""
    return Pass(
        cycle=draft.cycle,
        worker=draft.worker,
        phase=draft.phase or UNKNOWN_PHASE,
        state=draft.state,
        reason=reason,
        start_ns=draft.start_ns,
        cpu_ns=draft.cpu_ns,
        size=draft.size,
        graph_size=draft.graph_size,
        replays=draft.replays,
        sinks=len(draft.states),
        holder=draft.holder,
        gpu_ns=draft.gpu_ns,
        accepted=draft.accepted,
        launches=draft.launches,
    )
