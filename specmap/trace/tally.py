"""Counts passes of one phase, in bounded memory."""

from __future__ import annotations

from array import array
from collections import Counter, deque
from dataclasses import dataclass, field

from specmap.codemap.event import (
    LaunchCount,
    Launches,
    PhaseStats,
    ReasonCount,
    SizeCount,
    State,
    Stretch,
)
from specmap.codemap.source import Span
from specmap.trace.cycles import Draft

_SAMPLES = 4096
_FIRST, _LAST = 4, 4
_MOST_REASONS = 64
_MOST_LAUNCHES = 256
OTHER_REASONS = "other reasons"


@dataclass(slots=True)
class Sample:
    """A sample of a long series: every n-th value, n doubling whenever it is full."""

    values: array[int] = field(default_factory=lambda: array("q"))
    count: int = 0
    every: int = 1

    def add(self, value: int) -> None:
        """Take the next value of the series."""
        if self.count % self.every == 0:
            self.values.append(value)
            if len(self.values) >= _SAMPLES:
                del self.values[1::2]
                self.every *= 2
        self.count += 1

    def median(self) -> int | None:
        """Return the median of the sample, None without values."""
        return sorted(self.values)[len(self.values) // 2] if self.values else None


@dataclass(slots=True)
class _Reason:
    count: int
    first_cycle: int
    span: Span | None


@dataclass(slots=True)
class _Launched:
    """What the passes of one state launched."""

    passes: int = 0
    launches: Launches = field(default_factory=Launches)
    alike: Counter[Launches] = field(default_factory=Counter)

    def add(self, one: Launches) -> None:
        self.passes += 1
        self.launches += one
        if one in self.alike or len(self.alike) < _MOST_LAUNCHES:
            self.alike[one] += 1

    def of(self, state: State) -> LaunchCount:
        [(usual, passes)] = self.alike.most_common(1)
        return LaunchCount(state, self.passes, self.launches, usual, passes)


@dataclass(slots=True)
class PhaseTally:
    """One phase of one worker; see :class:`specmap.codemap.event.PhaseStats`."""

    worker: str
    phase: str
    passes: int = 0
    counts: Counter[State] = field(default_factory=Counter)
    reasons: dict[str, _Reason] = field(default_factory=dict)
    cpu_ns: int = 0
    gpu_ns: int = 0
    gpu_passes: int = 0
    real: int = 0
    padded: int = 0
    replays: int = 0
    graph_sizes: set[int] = field(default_factory=set)
    sizes: Counter[tuple[int, State]] = field(default_factory=Counter)
    launches: dict[State, _Launched] = field(default_factory=dict)
    times: Sample = field(default_factory=Sample)
    cycles: Sample = field(default_factory=Sample)
    replay_times: Sample = field(default_factory=Sample)
    head: list[Stretch] = field(default_factory=list)
    tail: deque[Stretch] = field(default_factory=lambda: deque(maxlen=_LAST))

    def add(self, draft: Draft, reason: str, span: Span | None, cycle_ns: int) -> None:
        """Count a pass; ``cycle_ns`` is the CPU time of its cycle's entry."""
        state, cpu_ns = draft.state, draft.cpu_ns
        self.passes += 1
        self.counts[state] += 1
        self.cpu_ns += cpu_ns
        self.cycles.add(cycle_ns)
        self.replays += draft.replays
        if draft.size >= 0:
            self.sizes[draft.size, state] += 1
        self.times.add(cpu_ns)
        if draft.gpu_ns is not None:
            self.gpu_ns += draft.gpu_ns
            self.gpu_passes += 1
        if draft.launches is not None:
            self.launches.setdefault(state, _Launched()).add(draft.launches)
        if reason:
            self._reason(reason, draft.cycle, span)
        if state in (State.GRAPH, State.PIECEWISE):
            self.replay_times.add(cpu_ns)
            self._sizes(draft)
        if state is not State.CAPTURE:
            self._stretch(state, draft.cycle)

    def _reason(self, text: str, cycle: int, span: Span | None) -> None:
        if text not in self.reasons and len(self.reasons) >= _MOST_REASONS:
            text, span = OTHER_REASONS, None
        known = self.reasons.setdefault(text, _Reason(0, cycle, span))
        known.count += 1

    def _sizes(self, draft: Draft) -> None:
        if draft.graph_size >= 0:
            self.graph_sizes.add(draft.graph_size)
            if 0 <= draft.size <= draft.graph_size:
                self.real += draft.size
                self.padded += draft.graph_size

    def _stretch(self, state: State, cycle: int) -> None:
        last = self.tail[-1] if self.tail else self.head[-1] if self.head else None
        if last is not None and last.state is state:
            grown = Stretch(state, last.first, cycle, last.passes + 1)
            if self.tail:
                self.tail[-1] = grown
            else:
                self.head[-1] = grown
        elif len(self.head) < _FIRST:
            self.head.append(Stretch(state, cycle, cycle, 1))
        else:
            self.tail.append(Stretch(state, cycle, cycle, 1))

    def stats(self) -> PhaseStats:
        """Return what was counted; reasons by count, the most frequent first."""
        time_ns, cycle_ns = self.times.median() or 0, self.cycles.median()
        reasons = sorted(self.reasons.items(), key=lambda item: (-item[1].count, item[0]))
        return PhaseStats(
            worker=self.worker,
            phase=self.phase,
            passes=self.passes,
            counts={state: self.counts[state] for state in State if self.counts[state]},
            reasons=tuple(
                ReasonCount(text, found.count, found.first_cycle, found.span)
                for text, found in reasons
            ),
            stretches=(*self.head, *self.tail),
            cpu_ns=self.cpu_ns,
            median_cpu_ns=time_ns,
            median_replay_ns=self.replay_times.median(),
            share=time_ns / cycle_ns if cycle_ns else 0.0,
            gpu_ns=self.gpu_ns,
            gpu_passes=self.gpu_passes,
            real=self.real,
            padded=self.padded,
            graph_sizes=tuple(sorted(self.graph_sizes)),
            replays=self.replays,
            sizes=tuple(SizeCount(*key, count) for key, count in sorted(self.sizes.items())),
            launches=tuple(
                self.launches[state].of(state) for state in State if state in self.launches
            ),
        )  # fmt: skip
