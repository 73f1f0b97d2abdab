"""One rank's records summed up while they are read."""

from __future__ import annotations

import copy
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from specmap.codemap.event import (
    AcceptStats,
    CycleStats,
    Pass,
    PhaseStats,
    RankRun,
    State,
    SyncStats,
)
from specmap.codemap.source import Span
from specmap.codemap.verdict import PhaseName
from specmap.trace.cycles import Cycle, Draft, frozen
from specmap.trace.header import Header
from specmap.trace.names import TraceNames
from specmap.trace.overhead import Windows
from specmap.trace.passes import Events, Machine
from specmap.trace.plan import Target, WrapPlan
from specmap.trace.reasons import NOT_NAMED, choose, phrase
from specmap.trace.series import Series
from specmap.trace.spool import Records, Tail
from specmap.trace.tally import PhaseTally, Sample

_ORDER = {name.value: index for index, name in enumerate(PhaseName)}
_NOT_REPLAYED = (State.EAGER, State.PARTIAL)
_MOST_STARTS = 8192
NO_SIGNATURE = 0


class Summary:
    """What one rank did so far. Memory grows only with how often that changed.

    ``signatures`` holds for each cycle a number that stands for its passes and how they ran
    (0: not seen), ``shapes`` what the numbers stand for; ``starts`` holds the starts of the
    first cycles, in ns. ``records`` counts all, ``senseless`` those of no kind that there is.
    """

    def __init__(self, plan: WrapPlan, names: TraceNames) -> None:
        self.signatures = Series()
        self.starts = array("Q")
        self.shapes: list[tuple[tuple[str, State, int, str], ...]] = [()]
        self._numbers: dict[tuple[tuple[str, State, int, str], ...], int] = {}
        self._plan = plan
        self._names = names
        self._targets: dict[int, Target] = {target.id: target for target in plan.targets}
        self._machine = Machine(plan, names.idle_modes)
        self._tallies: dict[tuple[str, str], PhaseTally] = {}
        self._syncs: Counter[tuple[int, str]] = Counter()
        self._blocked: Counter[tuple[int, str]] = Counter()
        self._windows = Windows()
        self._accept = [0, 0, 0]
        self._decode_times, self._entry_times = Sample(), Sample()
        self._decode_count = self._decode_requests = self._decode_sized = 0
        self._previous: Cycle | None = None
        self.records = self._cycles = self._lost = self._captures = 0
        self._first_ns = self._last_ns = 0
        self.senseless, self._salvaged = 0, False
        self._phrases: dict[tuple[tuple[int, int], ...], Mapping[str, Any] | None] = {}

    def feed(self, tail: Tail, records: Records) -> list[Pass]:
        """Take what a rank wrote; return the passes that are settled."""
        return [p for cycle in self._fed(tail, records) for p in self._settle(cycle, tail)]

    def paired(self, tail: Tail, records: Records) -> Iterator[tuple[Cycle, list[Pass]]]:
        """Take what a rank wrote; yield the cycles that are settled, with their passes."""
        for cycle in self._fed(tail, records):
            yield cycle, list(self._settle(cycle, tail))

    def take(self, tail: Tail, records: Records) -> None:
        """Take what a rank wrote, where nobody asks for the passes."""
        for cycle in self._fed(tail, records):
            for draft in cycle.drafts:
                self._count(self._tallies, draft, cycle, tail)

    def _fed(self, tail: Tail, records: Records) -> Iterator[Cycle]:
        """Take records; return the cycles that are settled."""
        if records:
            self._first_ns = self._first_ns or records.times[0]
            self._last_ns = records.times[-1]
        self.records += len(records)
        self._take(self._machine.feed(records, tail.header))
        return self._machine.settled()

    def finish(self, tail: Tail) -> list[Pass]:
        """Return the passes that still waited for late figures."""
        return [p for cycle in self._machine.settled(True) for p in self._settle(cycle, tail)]

    def rest(self, tail: Tail) -> Iterator[tuple[Cycle, list[Pass]]]:
        """Yield the cycles that still waited for late figures, with their passes."""
        for cycle in self._machine.settled(True):
            yield cycle, list(self._settle(cycle, tail))

    def rank_run(self, tail: Tail) -> RankRun:
        """Return the sums, with the passes that are not settled as they are now."""
        tallies = self._tallies
        waiting = list(self._machine.pending())
        if waiting:
            tallies = copy.deepcopy(tallies)
            for cycle in waiting:
                for draft in cycle.drafts:
                    self._count(tallies, draft, cycle, tail)
        header, calls = Header(tail.header), self._machine.calls
        return header.rank_run(
            tail,
            records=self.records,
            cycles=self._cycles,
            first_ns=self._first_ns,
            last_ns=self._last_ns,
            phases=tuple(_sorted(tallies.values())),
            decode=self._decode(),
            accept=AcceptStats(*self._accept),
            syncs=tuple(self._sync_stats(tail)),
            captures=self._captures,
            salvaged=self._salvaged,
            lost=self._lost,
            first_loss=self._machine.first_loss,
            overhead=self._windows.overhead(),
            calls={
                target.symbol: calls[number]
                for number, target in sorted(self._targets.items())
                if calls[number]
            },
        )

    def _take(self, events: Events) -> None:
        for cycle in events.cycles:
            self._cycle(cycle)
        for site, phase, blocked_ns in events.syncs:
            self._syncs[site, phase] += 1
            self._blocked[site, phase] += blocked_ns
        for requests, tokens in events.accepts:
            self._accept[0] += 1
            self._accept[1] += requests
            self._accept[2] += tokens
        self._lost += events.dropped
        self.senseless += events.senseless
        self._captures += events.captures
        self._salvaged = self._salvaged or events.salvaged

    def _cycle(self, cycle: Cycle) -> None:
        self._cycles += 1
        self.signatures.put(cycle.number, self._signature(cycle), NO_SIGNATURE)
        if cycle.number < _MOST_STARTS:
            self.starts.extend([0] * (cycle.number - len(self.starts)))
            self.starts.append(cycle.start_ns)
        self._windows.add(cycle)
        if any(draft.phase == PhaseName.VERIFY for draft in cycle.drafts):
            self._decode_cycle(cycle)
        else:
            self._previous = None

    def _decode_cycle(self, cycle: Cycle) -> None:
        self._decode_count += 1
        self._entry_times.add(cycle.entry_ns)
        size = next((d.size for d in cycle.drafts if d.phase == PhaseName.VERIFY), -1)
        if size >= 0:
            self._decode_requests += size
            self._decode_sized += 1
        if self._previous is not None and self._previous.number + 1 == cycle.number:
            self._decode_times.add(cycle.start_ns - self._previous.start_ns)
        self._previous = cycle

    def _signature(self, cycle: Cycle) -> int:
        if not cycle.armed:
            return NO_SIGNATURE
        shape = tuple((d.phase, d.state, d.graph_size, d.worker) for d in cycle.drafts)
        if shape not in self._numbers:
            self._numbers[shape] = len(self.shapes)
            self.shapes.append(shape)
        return self._numbers[shape]

    def _settle(self, cycle: Cycle, tail: Tail) -> Iterator[Pass]:
        for draft in cycle.drafts:
            reason = self._count(self._tallies, draft, cycle, tail)
            yield frozen(draft, reason)

    def _count(
        self, tallies: dict[tuple[str, str], PhaseTally], draft: Draft, cycle: Cycle, tail: Tail
    ) -> str:
        reason, span = self._reason(draft, tail)
        key = (draft.worker, draft.phase)
        if key not in tallies:
            tallies[key] = PhaseTally(*key)
        tallies[key].add(draft, reason, span, cycle.entry_ns)
        return reason

    def _reason(self, draft: Draft, tail: Tail) -> tuple[str, Span | None]:
        if draft.state not in _NOT_REPLAYED:
            return "", None
        key = tuple(draft.reasons)
        if key not in self._phrases:
            said = [
                {**tail.names[n], "at": t, "inside": self._method(t)}
                for t, n in key
                if n in tail.names
            ]
            if key and not said:
                return NOT_NAMED, None
            self._phrases[key] = choose(said, self._names)
        item = self._phrases[key]
        arguments = tail.header.get("arguments")
        text = phrase(
            item, draft.phase, self._names, arguments if isinstance(arguments, dict) else {}
        )
        return text, None if item is None else self._span(item)

    def _method(self, number: int) -> str:
        target = self._targets.get(number)
        return target.qualname.rpartition(".")[2] if target is not None else ""

    def _span(self, item: Mapping[str, Any]) -> Span | None:
        target = self._targets.get(item["at"])
        if target is None:
            return None
        line = item.get("line")
        line = line if isinstance(line, int) else target.line
        return Span(target.file, line, line)

    def _decode(self) -> CycleStats:
        return CycleStats(
            count=self._decode_count,
            median_ns=self._decode_times.median(),
            median_entry_ns=self._entry_times.median() or 0,
            requests=self._decode_requests / self._decode_sized if self._decode_sized else 0.0,
        )

    def _sync_stats(self, tail: Tail) -> Iterator[SyncStats]:
        by_time = sorted(self._blocked.items(), key=lambda item: (-item[1], item[0]))
        for (site, phase), blocked_ns in by_time:
            item = tail.names.get(site, {})
            span, label = self._site(item)
            yield SyncStats(span, label, phase, self._syncs[site, phase], blocked_ns)

    def _site(self, item: Mapping[str, Any]) -> tuple[Span | None, str]:
        file, line = str(item.get("file", "")), item.get("line")
        call = str(item.get("call", ""))
        if not isinstance(line, int):
            return None, call
        below = f"{self._plan.package}/"
        at = file.rfind(f"/{below}")
        short = file[at + 1 :] if at >= 0 else file
        known = (s for s in self._plan.syncs if s.file == short and s.line <= line <= s.end_line)
        return Span(short, line, line), next((s.label for s in known), call)


def _sorted(tallies: Iterable[PhaseTally]) -> list[PhaseStats]:
    return [
        tally.stats()
        for tally in sorted(
            tallies, key=lambda t: (t.worker, _ORDER.get(t.phase, len(_ORDER)), t.phase)
        )
    ]
