"""Ranks compared with each other, by cycle number and never by what a clock says happened."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from specmap.codemap.event import RankRun, RunFinding, RunProblem, State
from specmap.trace.summary import NO_SIGNATURE, Summary

_REPLAYED = (State.GRAPH, State.PIECEWISE)
_NOT_REPLAYED = (State.EAGER, State.PARTIAL)
_SLOW, _SLOW_NS = 1.25, 100_000
_LEAST_CYCLES = 20
_GONE_NS = 500_000_000


@dataclass(frozen=True, slots=True)
class Member:
    """A rank in a comparison; ``boot`` and ``from_start`` say how its cycles are numbered."""

    rank: RankRun
    summary: Summary
    boot: str
    from_start: bool

    @property
    def known(self) -> int:
        """How many cycles have sure numbers: all, or those before records were lost."""
        loss = self.rank.first_loss
        return len(self.summary.signatures) if loss is None else loss


@dataclass(frozen=True, slots=True)
class Ranks:
    """How many ranks there should be, None if unknown.

    ``replicas_inside`` says that data-parallel replicas are parts of one group: they run the
    same cycles with batches of their own.
    """

    expected: int | None
    replicas_inside: bool = False


@dataclass(slots=True)
class _Seen:
    cycles: int = 0
    first: int = 0
    last: int = 0
    values: set[int] = field(default_factory=set)


def compare(members: Sequence[Member], number: Ranks) -> Iterator[RunFinding]:
    """Yield what the ranks differ in; those that run the same cycles are compared."""
    groups: dict[tuple[int, int], list[Member]] = defaultdict(list)
    for member in members:
        replica = -1 if number.replicas_inside else member.rank.dp_rank
        groups[replica, member.rank.pp_rank].append(member)
    yield from _absent(members, number.expected)
    for group in groups.values():
        if len(group) > 1:
            yield from _stopped(group)
            found = _compare(group)
            if number.replicas_inside:
                # Batches of their own have sizes of their own, and may be idle.
                yield from (f for f in found if f.problem is not RunProblem.GRAPH_SIZE)
            else:
                yield from found
                yield from _slow(group)


def title(rank: RankRun) -> str:
    """Name a rank as people do: by the parallel ranks that it has."""
    parts = [("tp", rank.tp_rank), ("pp", rank.pp_rank), ("dp", rank.dp_rank)]
    named = [f"{kind} {number}" for kind, number in parts if number > 0 or kind == "tp"]
    return f"rank {', '.join(named)}"


def _absent(members: Sequence[Member], expected: int | None) -> Iterator[RunFinding]:
    if expected is None or not members:
        return
    missing = expected - len(members)
    if missing > 0:
        there = ", ".join(title(m.rank) for m in members)
        yield RunFinding(
            RunProblem.RANK_MISSING,
            f"{missing} of {expected} ranks left no log (there are: {there})",
        )


def _stopped(group: Sequence[Member]) -> Iterator[RunFinding]:
    """Yield the ranks that ended while the others went on."""
    last = max(m.rank.last_ns for m in group if m.boot == group[0].boot)
    for member in group:
        rank = member.rank
        behind = last - rank.last_ns
        gap = max(_GONE_NS, 20 * (rank.decode.median_ns or 0))
        if not rank.finished and member.boot == group[0].boot and behind > gap:
            yield RunFinding(
                RunProblem.RANK_MISSING,
                f"{title(rank)} (process {rank.pid}) did not end its log: it was killed or hangs "
                f"after {rank.cycles} cycles, {behind / 1e9:.1f} s before the others",
                (rank.name,),
                cycle=rank.cycles,
            )


def _compare(group: Sequence[Member]) -> Iterator[RunFinding]:
    first = group[0]
    shifts = [_shift(first, member) for member in group]
    for member, shift in zip(group, shifts, strict=True):
        if shift is None:
            yield RunFinding(
                RunProblem.LOSS,
                f"{title(member.rank)} is not compared: its cycles cannot be matched with those "
                f"of {title(first.rank)}",
                (member.rank.name,),
                failing=False,
            )
    pairs = [(m, s) for m, s in zip(group, shifts, strict=True) if s is not None]
    if len(pairs) > 1:
        yield from _differences(pairs)


def _shift(first: Member, other: Member) -> int | None:
    """Return what to add to a cycle number of ``first`` to get that of ``other``.

    Ranks that were traced from their start count alike. Those that were attached to are
    matched by when a cycle began, on one host, where all read the same clock.
    """
    if first is other or (first.from_start and other.from_start):
        return 0
    known = min(first.known, other.known)
    if first.boot != other.boot or not first.boot or known < 2:
        return None
    middle = first.known // 2
    starts = other.summary.starts[: other.known]
    when = first.summary.starts[middle]
    at = bisect_left(starts, when)
    near = min(
        (i for i in (at - 1, at) if 0 <= i < len(starts)), key=lambda i: abs(starts[i] - when)
    )
    gap = first.summary.starts[middle] - first.summary.starts[middle - 1]
    return near - middle if abs(starts[near] - when) * 2 < gap else None


def _differences(pairs: Sequence[tuple[Member, int]]) -> Iterator[RunFinding]:
    eager: dict[tuple[str, str], _Seen] = defaultdict(_Seen)
    sizes: dict[str, _Seen] = defaultdict(_Seen)
    paths = _Seen()
    ranks = {member.rank.name: member.rank for member, _ in pairs}
    for cycle, shapes in _unlike(pairs):
        phases = {name: {p: (s, size) for p, s, size, _ in shape} for name, shape in shapes.items()}
        for phase in sorted({p for found in phases.values() for p in found}):
            seen = {name: found[phase] for name, found in phases.items() if phase in found}
            behind = [name for name, (state, _) in seen.items() if state in _NOT_REPLAYED]
            if len(seen) < len(phases):
                _note(paths, cycle)
            elif behind and any(state in _REPLAYED for state, _ in seen.values()):
                for name in behind:
                    _note(eager[name, phase], cycle)
            elif len({size for _, size in seen.values()}) > 1:
                _note(sizes[phase], cycle)
                sizes[phase].values |= {size for _, size in seen.values()}
    yield from _eager_ranks(eager, ranks)
    for phase, found in sorted(sizes.items()):
        yield RunFinding(
            RunProblem.GRAPH_SIZE,
            f"{phase}: the ranks replayed graphs of different sizes "
            f"({', '.join(map(str, sorted(found.values)))}) in {_cycles(found)}",
            tuple(ranks), phase, found.first,
        )  # fmt: skip
    if paths.cycles:
        yield RunFinding(
            RunProblem.GRAPH_SIZE,
            f"the ranks ran different phases in {_cycles(paths)}",
            tuple(ranks), cycle=paths.first,
        )  # fmt: skip


def _eager_ranks(
    eager: Mapping[tuple[str, str], _Seen], ranks: Mapping[str, RankRun]
) -> Iterator[RunFinding]:
    for (name, phase), found in sorted(eager.items(), key=lambda item: -item[1].cycles):
        rank = ranks[name]
        why = [r.text for p in rank.phases if p.phase == phase for r in p.reasons[:1]]
        reason = f": {why[0]}" if why else ""
        yield RunFinding(
            RunProblem.RANK_EAGER,
            f"{title(rank)} ran {phase} eager while others replayed it, in {_cycles(found)}"
            f"{reason}",
            (name,),
            phase,
            found.first,
        )


def _unlike(
    pairs: Sequence[tuple[Member, int]],
) -> Iterator[tuple[int, dict[str, tuple[tuple[str, State, int, str], ...]]]]:
    """Yield the cycles in which not all ranks did the same, with what each did."""
    numbers: dict[object, int] = {}
    tables = [
        [numbers.setdefault(shape, len(numbers)) for shape in member.summary.shapes]
        for member, _ in pairs
    ]
    lowest = max(0, *(-shift for _, shift in pairs))
    known = min(member.known - shift for member, shift in pairs)
    series = [
        (m.summary.signatures, shift, table)
        for (m, shift), table in zip(pairs, tables, strict=True)
    ]
    for cycle in range(lowest, known):
        raw = [signatures[cycle + shift] for signatures, shift, _ in series]
        if NO_SIGNATURE in raw:
            continue
        if len({table[n] for n, (_, _, table) in zip(raw, series, strict=True)}) > 1:
            yield (
                cycle,
                {m.rank.name: m.summary.shapes[n] for (m, _), n in zip(pairs, raw, strict=True)},
            )


def _note(seen: _Seen, cycle: int) -> None:
    """Count a cycle, once."""
    if not seen.cycles:
        seen.first = cycle
    seen.cycles += seen.cycles == 0 or seen.last != cycle
    seen.last = cycle


def _cycles(seen: _Seen) -> str:
    if seen.cycles == 1:
        return f"cycle {seen.first}"
    return f"{seen.cycles} cycles, first in cycle {seen.first}"


def _slow(group: Sequence[Member]) -> Iterator[RunFinding]:
    """Yield ranks whose scheduler needs much longer for a cycle, though they run the same."""
    times = {m.rank.name: m.rank.decode.median_entry_ns for m in group}
    if any(m.rank.decode.count < _LEAST_CYCLES for m in group):
        return
    for member in group:
        others = median(time for name, time in times.items() if name != member.rank.name)
        mine = times[member.rank.name]
        if mine > max(_SLOW * others, others + _SLOW_NS):
            yield RunFinding(
                RunProblem.SLOW_RANK,
                f"{title(member.rank)} needs {mine / 1e6:.2f} ms of CPU time a decode cycle, "
                f"the others {others / 1e6:.2f} ms",
                (member.rank.name,),
            )
