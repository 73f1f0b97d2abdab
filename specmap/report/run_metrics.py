"""The counts of a run as metrics: Prometheus text, and OpenTelemetry's JSON.

Labels are ranks, workers, phases, states and kinds of findings: a bounded set. Reasons hold
numbers, so they are no labels.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from specmap import __version__
from specmap.codemap.event import RankRun, Run

_NS = 1e-9
_CUMULATIVE = 2

Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric with its values; ``total`` ones only grow, the others are as they are now."""

    name: str
    unit: str
    help: str
    total: bool
    values: tuple[tuple[Labels, float], ...]


def metrics_of(run: Run) -> tuple[Metric, ...]:
    """Return all metrics of a run; those without a value are left out."""
    found = Counter(finding.problem for finding in run.findings)
    findings: list[tuple[Labels, float]] = [
        ((("problem", problem.value),), count) for problem, count in sorted(found.items())
    ]
    metrics = [
        *_of_phases(run.ranks),
        *_of_ranks(run.ranks),
        Metric("findings", "", "Findings of the run, by kind.", False, tuple(findings)),
    ]
    return tuple(metric for metric in metrics if metric.values)


def _of_phases(ranks: tuple[RankRun, ...]) -> Iterator[Metric]:
    passes: list[tuple[Labels, float]] = []
    cpu: list[tuple[Labels, float]] = []
    gpu: list[tuple[Labels, float]] = []
    timed: list[tuple[Labels, float]] = []
    for rank in ranks:
        for phase in rank.phases:
            labels = (("rank", rank.name), ("worker", phase.worker), ("phase", phase.phase))
            passes += [
                ((*labels, ("state", state.value)), count)
                for state, count in sorted(phase.counts.items())
            ]
            cpu.append((labels, phase.cpu_ns * _NS))
            if phase.gpu_passes:
                gpu.append((labels, phase.gpu_ns * _NS))
                timed.append((labels, phase.gpu_passes))
    yield Metric("passes", "", "Passes of a phase, by how they ran.", True, tuple(passes))
    yield Metric(
        "pass_cpu", "seconds", "Host time from entering a phase to leaving it.", True, tuple(cpu)
    )
    yield Metric("pass_gpu", "seconds", "GPU time of a phase, of timed passes.", True, tuple(gpu))
    yield Metric("gpu_timed_passes", "", "Passes with a GPU time.", True, tuple(timed))


def _of_ranks(ranks: tuple[RankRun, ...]) -> Iterator[Metric]:
    def each(name: str, unit: str, text: str, value: dict[str, float]) -> Metric:
        values = tuple(((("rank", rank),), number) for rank, number in value.items())
        return Metric(name, unit, text, True, values)

    counted = [rank for rank in ranks if rank.accept.steps]
    waited = [rank for rank in ranks if rank.syncs]
    yield each("cycles", "", "Cycles of a rank.", {r.name: r.cycles for r in ranks})
    yield each(
        "lost_records", "", "Records that the ring dropped.", {r.name: r.lost for r in ranks}
    )
    yield each(
        "verified_requests", "", "Requests in verify steps.",
        {r.name: r.accept.requests for r in counted},
    )  # fmt: skip
    yield each(
        "accepted_tokens", "", "Tokens that verify steps accepted, with the bonus token.",
        {r.name: r.accept.tokens for r in counted},
    )  # fmt: skip
    yield each(
        "sync_blocked", "seconds", "Time that the host waited for the device.",
        {r.name: sum(sync.blocked_ns for sync in r.syncs) * _NS for r in waited},
    )  # fmt: skip


def render_prometheus(run: Run) -> str:
    """Return the text format that the node exporter's textfile collector reads."""
    lines = []
    for metric in metrics_of(run):
        parts = ["specmap", metric.name, *filter(None, [metric.unit])]
        name = "_".join([*parts, "total"] if metric.total else parts)
        lines += [
            f"# HELP {name} {metric.help}",
            f"# TYPE {name} {'counter' if metric.total else 'gauge'}",
        ]
        for labels, value in metric.values:
            inside = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels)
            lines.append(f"{name}{{{inside}}} {value!r}")
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def render_otlp(run: Run, time_ns: int) -> str:
    """Return an ExportMetricsServiceRequest in JSON, taken at ``time_ns`` since 1970.

    Counters are cumulative over the run; the names are ``specmap.passes`` and so on.
    """
    resource = {"service.name": "sglang", "sglang.release": run.release or "unknown"}
    scope = {"name": "specmap", "version": __version__}
    metrics = [_otlp(metric, time_ns) for metric in metrics_of(run)]
    request = {
        "resourceMetrics": [
            {
                "resource": {"attributes": _attributes(tuple(sorted(resource.items())))},
                "scopeMetrics": [{"scope": scope, "metrics": metrics}],
            }
        ]
    }
    return json.dumps(request)


def _otlp(metric: Metric, time_ns: int) -> dict[str, object]:
    points = [
        {"attributes": _attributes(labels), "timeUnixNano": str(time_ns), "asDouble": float(value)}
        for labels, value in metric.values
    ]
    shape: dict[str, object] = {"dataPoints": points}
    if metric.total:
        shape |= {"aggregationTemporality": _CUMULATIVE, "isMonotonic": True}
    return {
        "name": f"specmap.{metric.name}",
        "unit": {"seconds": "s"}.get(metric.unit, "1"),
        "description": metric.help,
        "sum" if metric.total else "gauge": shape,
    }


def _attributes(labels: Labels) -> list[dict[str, object]]:
    return [{"key": key, "value": {"stringValue": text}} for key, text in labels]
