"""What the ranks of a recorded run did: findings, budget, and each rank with its timeline."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from specmap.codemap.event import Budget, Overhead, PhaseStats, RankRun, RunFinding
from specmap.report.page.phases import reason_count, states
from specmap.report.page.subject import Subject
from specmap.report.page.tables import Json, Tables
from specmap.report.rank_names import rank_names
from specmap.report.run_text import launch_words
from specmap.trace.rundir import without_secrets


def run(subject: Subject, tables: Tables, timelines: Mapping[str, Any]) -> Json | None:
    """Return the run of a side; None without one."""
    ran = subject.run
    if ran is None:
        return None
    numbers = {rank.name: number for number, rank in enumerate(ran.ranks)}
    return {
        "name": subject.run_name,
        "release": ran.release,
        "command": without_secrets(ran.command),
        "ranksExpected": ran.ranks_expected,
        "failing": ran.failing,
        "findings": [_finding(finding, numbers) for finding in ran.findings],
        "notes": [*ran.damage, *ran.notes],
        "budget": None if ran.budget is None else _budget(ran.budget),
        "ranks": [_rank(rank, tables, timelines.get(rank.name)) for rank in ran.ranks],
    }


def _finding(finding: RunFinding, numbers: Mapping[str, int]) -> Json:
    return {
        "problem": finding.problem.value,
        "message": finding.message,
        "ranks": [numbers[name] for name in finding.ranks if name in numbers],
        "phase": finding.phase,
        "cycle": finding.cycle,
        "failing": finding.failing,
    }


def _budget(budget: Budget) -> Json:
    return {
        "cycleNs": budget.cycle_ns,
        "requests": budget.requests,
        "tokensPerCycle": budget.tokens_per_cycle,
        "boundTps": budget.bound_tps,
        "baselineTps": budget.baseline_tps,
        "breakEven": budget.break_even,
        "replayedTps": budget.replayed_tps,
        "replayedSure": budget.replayed_sure,
        "note": budget.note,
    }


def _rank(rank: RankRun, tables: Tables, timeline: Any) -> Json:
    return {
        "name": rank.name,
        "title": rank_names([rank]),
        "tp": rank.tp_rank,
        "pp": rank.pp_rank,
        "dp": rank.dp_rank,
        "host": rank.host,
        "gpu": rank.gpu,
        "ring": rank.ring,
        "finished": rank.finished,
        "records": rank.records,
        "cycles": rank.cycles,
        "lost": rank.lost,
        "firstLoss": rank.first_loss,
        "captures": rank.captures,
        "decode": {
            "count": rank.decode.count,
            "medianNs": rank.decode.median_ns,
            "entryNs": rank.decode.median_entry_ns,
            "requests": rank.decode.requests,
        },
        "acceptLength": rank.accept.length,
        "overhead": None if rank.overhead is None else _overhead(rank.overhead),
        "faults": list(rank.faults),
        "missing": [{"symbol": symbol, "why": why} for symbol, why in rank.missing],
        "phases": [_phase(phase, tables) for phase in rank.phases],
        "syncs": [
            {
                "place": tables.place(sync.span),
                "label": sync.label,
                "phase": sync.phase,
                "count": sync.count,
                "blockedNs": sync.blocked_ns,
            }
            for sync in rank.syncs
        ],
        "calls": dict(rank.calls),
        "timeline": timeline,
    }


def _overhead(measured: Overhead) -> Json:
    return {
        "windows": measured.windows,
        "cost": measured.cost,
        "costError": measured.cost_error,
        "null": measured.null,
        "nullError": measured.null_error,
    }


def _phase(phase: PhaseStats, tables: Tables) -> Json:
    return {
        "worker": phase.worker,
        "phase": phase.phase,
        "passes": phase.passes,
        "counts": states(phase.counts),
        "reasons": [reason_count(reason, tables) for reason in phase.reasons],
        "stretches": [
            {"state": s.state.value, "first": s.first, "last": s.last, "passes": s.passes}
            for s in phase.stretches
        ],
        "cpuNs": phase.cpu_ns,
        "medianCpuNs": phase.median_cpu_ns,
        "medianReplayNs": phase.median_replay_ns,
        "share": phase.share,
        "gpuNs": phase.gpu_ns,
        "gpuPasses": phase.gpu_passes,
        "real": phase.real,
        "padded": phase.padded,
        "graphSizes": list(phase.graph_sizes),
        "replays": phase.replays,
        "launches": [launch_words(launched) for launched in phase.launches],
        "sizes": [
            {"size": s.size, "state": s.state.value, "passes": s.passes} for s in phase.sizes
        ],
    }
