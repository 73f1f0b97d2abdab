"""Ranks compared with each other, by cycle number and never by what a clock says happened."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import merge
from math import prod
from statistics import median

from specmap.codemap.event import RankRun, RunFinding, RunProblem, State
from specmap.trace.summary import NO_SIGNATURE, Summary

_REPLAYED = (State.GRAPH, State.PIECEWISE)
_NOT_REPLAYED = (State.EAGER, State.PARTIAL)
_SLOW, _SLOW_NS = 1.25, 100_000
_LEAST_CYCLES = 20
_GONE_NS = 500_000_000

_Shape = tuple[tuple[str, State, int, str], ...]


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
    yield from _absent(members, number.expected)
    for group in _groups(members, number):
        if len(group) > 1:
            yield from _stopped(group)
            found = _compare(group)
            if number.replicas_inside:
                # Batches of their own have sizes of their own, and may be idle.
                yield from (f for f in found if f.problem is not RunProblem.GRAPH_SIZE)
            else:
                yield from found
                yield from _slow(group)


Unlike = Mapping[str, tuple[tuple[int, int], ...]]
"""By rank: stretches of its cycles, each its first cycle and how many there are."""


def unlike(members: Sequence[Member], number: Ranks) -> Unlike:
    """Return the cycles in which a rank and those of its group did not do the same.

    Where replicas have batches of their own, only those count in which some replayed a phase
    and some did not.
    """
    found: dict[str, list[tuple[int, int]]] = {member.rank.name: [] for member in members}
    for group in _groups(members, number):
        pairs = [(m, s) for m in group if (s := _shift(group[0], m)) is not None]
        for cycle, count, shapes in _unlike(pairs) if len(pairs) > 1 else ():
            if number.replicas_inside and not _mixed(shapes.values()):
                continue
            for member, shift in pairs:
                if member.rank.name in shapes:
                    found[member.rank.name].append((cycle + shift, count))
    return {name: tuple(stretches) for name, stretches in found.items()}


def _mixed(shapes: Iterable[_Shape]) -> bool:
    """Whether some ranks replayed a phase that others did not."""
    ran = {(phase, state in _REPLAYED) for shape in shapes for phase, state, _, _ in shape}
    return any((phase, not replayed) in ran for phase, replayed in ran)


def _groups(members: Sequence[Member], number: Ranks) -> Iterable[list[Member]]:
    """Return the ranks that run the same cycles together."""
    groups: dict[tuple[int, int], list[Member]] = defaultdict(list)
    for member in members:
        replica = -1 if number.replicas_inside else member.rank.dp_rank
        groups[replica, member.rank.pp_rank].append(member)
    return groups.values()


def title(rank: RankRun) -> str:
    """Name a rank as people do: by the parallel ranks that it has."""
    parts = [("tp", rank.tp_rank), ("pp", rank.pp_rank), ("dp", rank.dp_rank)]
    named = [f"{kind} {number}" for kind, number in parts if number > 0 or kind == "tp"]
    return f"rank {', '.join(named)}"


def titles(ranks: Sequence[RankRun]) -> str:
    """Name several ranks: by ranges of their numbers where those say which, else one by one."""
    if len(ranks) == 1:
        return title(ranks[0])
    numbers = [
        ("tp", sorted({rank.tp_rank for rank in ranks})),
        ("pp", sorted({rank.pp_rank for rank in ranks})),
        ("dp", sorted({rank.dp_rank for rank in ranks})),
    ]
    if prod(len(found) for _, found in numbers) != len(ranks):
        return f"ranks {'; '.join(title(rank).removeprefix('rank ') for rank in ranks)}"
    named = [f"{k} {_ranges(found)}" for k, found in numbers if k == "tp" or found[-1] > 0]
    return f"ranks {', '.join(named)}"


def _ranges(numbers: Sequence[int]) -> str:
    """Write ascending numbers: ``0 to 6, 9``."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and number == parts[-1][-1] + 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    words = (f"{p[0]} to {p[-1]}" if len(p) > 2 else ", ".join(map(str, p)) for p in parts)
    return ", ".join(words)


def told_once(found: Iterable[RunFinding], ranks: Sequence[RankRun]) -> Iterator[RunFinding]:
    """Yield findings; those of several ranks that say the same of each are one, of all of them."""
    known = {rank.name: rank for rank in ranks}
    same: dict[tuple[object, ...], list[RunFinding]] = {}
    for finding in found:
        same.setdefault(_said(finding, known), []).append(finding)
    for each in same.values():
        named = [known[finding.ranks[0]] for finding in each] if len(each) > 1 else []
        if len({rank.name for rank in named}) < 2:
            yield from each
            continue
        rest = each[0].message.removeprefix(title(named[0]))
        cycles = [finding.cycle for finding in each if finding.cycle is not None]
        yield replace(
            each[0],
            message=f"{titles(named)}{rest}",
            ranks=tuple(rank.name for rank in named),
            cycle=min(cycles, default=None),
        )


def _said(finding: RunFinding, known: Mapping[str, RankRun]) -> tuple[object, ...]:
    """Return what a finding says whatever its rank; one that is not of one rank is only itself."""
    if len(finding.ranks) == 1:
        name = title(known[finding.ranks[0]])
        if finding.message.startswith(name):
            rest = finding.message.removeprefix(name)
            return finding.problem, rest, finding.phase, finding.failing
    return (id(finding),)


def _absent(members: Sequence[Member], expected: int | None) -> Iterator[RunFinding]:
    if expected is None or not members:
        return
    missing = expected - len(members)
    if missing > 0:
        there = titles([m.rank for m in members])
        yield RunFinding(
            RunProblem.RANK_MISSING,
            f"{missing} of {expected} ranks left no log (there are: {there})",
        )


def _stopped(group: Sequence[Member]) -> Iterator[RunFinding]:
    """Yield the ranks that ended while the others went on."""
    for member in group:
        rank = member.rank
        behind = _behind(member, group)
        gap = max(_GONE_NS, 20 * (rank.decode.median_ns or 0))
        if not rank.finished and not rank.cut_short and behind > gap:
            yield RunFinding(
                RunProblem.RANK_MISSING,
                f"{title(rank)} (process {rank.pid}) did not end its log: it was killed or hangs "
                f"after {rank.cycles} cycles, {behind / 1e9:.1f} s before the others",
                (rank.name,),
                cycle=rank.cycles,
            )


def _behind(member: Member, group: Sequence[Member]) -> int:
    """Return by how many ns a rank ended before others; by its cycles where no clock says so."""
    rank = member.rank
    beside = [m.rank.last_ns for m in group if m.boot == member.boot and m is not member]
    if member.boot and beside:
        return max(beside) - rank.last_ns
    missing = max(len(m.summary.signatures) for m in group) - len(member.summary.signatures)
    return missing * (rank.decode.median_ns or 0)


def _compare(group: Sequence[Member]) -> Iterator[RunFinding]:
    first = group[0]
    shifts = [_shift(first, member) for member in group]
    for member, shift in zip(group, shifts, strict=True):
        if shift is None:
            yield RunFinding(
                RunProblem.LOSS,
                f"{title(member.rank)}: not compared, for the cycles cannot be matched with those "
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
    mine, starts = (m.summary.starts[: m.known] for m in (first, other))
    if first.boot != other.boot or not first.boot or min(len(mine), len(starts)) < 2:
        return None
    middle = len(mine) // 2
    when = mine[middle]
    at = bisect_left(starts, when)
    near = min(
        (i for i in (at - 1, at) if 0 <= i < len(starts)), key=lambda i: abs(starts[i] - when)
    )
    gap = mine[middle] - mine[middle - 1]
    return near - middle if abs(starts[near] - when) * 2 < gap else None


def _differences(pairs: Sequence[tuple[Member, int]]) -> Iterator[RunFinding]:
    eager: dict[tuple[str, str], _Seen] = defaultdict(_Seen)
    sizes: dict[str, _Seen] = defaultdict(_Seen)
    paths = _Seen()
    ranks = {member.rank.name: member.rank for member, _ in pairs}
    for cycle, count, shapes in _unlike(pairs):
        phases = {name: {p: (s, size) for p, s, size, _ in shape} for name, shape in shapes.items()}
        for phase in sorted({p for found in phases.values() for p in found}):
            seen = {name: found[phase] for name, found in phases.items() if phase in found}
            behind = [name for name, (state, _) in seen.items() if state in _NOT_REPLAYED]
            if len(seen) < len(phases):
                _note(paths, cycle, count)
            elif behind and any(state in _REPLAYED for state, _ in seen.values()):
                for name in behind:
                    _note(eager[name, phase], cycle, count)
            elif len({size for _, size in seen.values()}) > 1:
                _note(sizes[phase], cycle, count)
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
) -> Iterator[tuple[int, int, dict[str, _Shape]]]:
    """Yield stretches of cycles in which not all ranks did the same, with what each did.

    A stretch is its first cycle and its length. A rank takes part where its cycles are known.
    """
    numbers: dict[object, int] = {}
    tables = [
        [numbers.setdefault(shape, len(numbers)) for shape in member.summary.shapes]
        for member, _ in pairs
    ]
    now = [NO_SIGNATURE] * len(pairs)
    at = 0
    for cycle, rank, signature in merge(*(_changes(*pair, n) for n, pair in enumerate(pairs))):
        seen = [n for n, known in enumerate(now) if known != NO_SIGNATURE]
        if cycle > at and len({tables[n][now[n]] for n in seen}) > 1:
            members = ((pairs[n][0], now[n]) for n in seen)
            yield at, cycle - at, {m.rank.name: m.summary.shapes[is_] for m, is_ in members}
        at, now[rank] = max(at, cycle), signature


def _changes(member: Member, shift: int, rank: int) -> Iterator[tuple[int, int, int]]:
    """Yield the cycles, numbered as by the first rank, from which on a rank did otherwise."""
    for cycle, signature in member.summary.signatures.changes():
        if cycle < member.known:
            yield cycle - shift, rank, signature
    yield member.known - shift, rank, NO_SIGNATURE


def _note(seen: _Seen, first: int, count: int) -> None:
    """Count a stretch of cycles, once."""
    if not seen.cycles:
        seen.first = first
    elif seen.last == first:
        return
    seen.cycles += count
    seen.last = first


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
