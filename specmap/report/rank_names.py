"""Ranks by what tells them apart, and those that ran alike."""

from __future__ import annotations

from specmap.codemap.event import RankRun, Run
from specmap.report.outcome_text import ranges


def alike(run: Run) -> list[tuple[RankRun, list[RankRun]]]:
    """Group ranks that ran every phase alike: one table each, for its first rank."""
    groups: list[tuple[RankRun, list[RankRun]]] = []
    for rank in run.ranks:
        for first, others in groups:
            if _shape(first) == _shape(rank):
                others.append(rank)
                break
        else:
            groups.append((rank, [rank]))
    return groups


def _shape(rank: RankRun) -> list[tuple[object, ...]]:
    return [
        (
            p.worker, p.phase, tuple(p.counts), tuple(r.text for r in p.reasons),
            tuple((count.state, count.usual) for count in p.launches),
        )
        for p in rank.phases
    ]  # fmt: skip


def rank_names(ranks: list[RankRun]) -> str:
    """Name ranks by what tells them apart: ``TP 0-3``, ``TP 0, DP 1``."""
    parts = []
    for kind, numbers in (
        ("TP", {rank.tp_rank for rank in ranks}),
        ("PP", {rank.pp_rank for rank in ranks}),
        ("DP", {rank.dp_rank for rank in ranks}),
    ):
        known = tuple(sorted(n for n in numbers if n >= 0))
        if kind == "TP" or any(known):
            parts.append(f"{kind} {_numbers(known)}")
    return ", ".join(parts)


def _numbers(known: tuple[int, ...]) -> str:
    if not known:
        return "?"
    if len(known) > 2 and known == tuple(range(known[0], known[-1] + 1)):
        return f"{known[0]}-{known[-1]}"
    return ranges(known)
