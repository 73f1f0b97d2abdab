"""The counts of a run as metrics: Prometheus text, and OpenTelemetry's JSON.

Labels are ranks by their parallel numbers, as SGLang's own metrics name them, workers, phases,
states and kinds of findings: a bounded set. Reasons hold numbers and logs the number of a process,
so they are no labels; logs of one rank are added up.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
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
    passes: dict[Labels, float] = defaultdict(int)
    cpu: dict[Labels, float] = defaultdict(float)
    gpu: dict[Labels, float] = defaultdict(float)
    timed: dict[Labels, float] = defaultdict(int)
    for rank in ranks:
        for phase in rank.phases:
            labels = (*_rank(rank), ("worker", phase.worker), ("phase", phase.phase))
            for state, count in sorted(phase.counts.items()):
                passes[*labels, ("state", state.value)] += count
            cpu[labels] += phase.cpu_ns * _NS
            if phase.gpu_passes:
                gpu[labels] += phase.gpu_ns * _NS
                timed[labels] += phase.gpu_passes
    yield _total("passes", "", "Passes of a phase, by how they ran.", passes)
    yield _total("pass_cpu", "seconds", "Host time from entering a phase to leaving it.", cpu)
    yield _total("pass_gpu", "seconds", "GPU time of a phase, of timed passes.", gpu)
    yield _total("gpu_timed_passes", "", "Passes with a GPU time.", timed)


def _of_ranks(ranks: tuple[RankRun, ...]) -> Iterator[Metric]:
    def each(
        name: str, unit: str, text: str, of: Sequence[RankRun], value: Callable[[RankRun], float]
    ) -> Metric:
        sums: dict[Labels, float] = defaultdict(int)
        for rank in of:
            sums[_rank(rank)] += value(rank)
        return _total(name, unit, text, sums)

    counted = [rank for rank in ranks if rank.accept.steps]
    waited = [rank for rank in ranks if rank.syncs]
    yield each("cycles", "", "Cycles of a rank.", ranks, lambda r: r.cycles)
    yield each("lost_records", "", "Records that the ring dropped.", ranks, lambda r: r.lost)
    yield each(
        "verified_requests", "", "Requests in verify steps.", counted, lambda r: r.accept.requests
    )
    yield each(
        "accepted_tokens", "", "Tokens that verify steps accepted, with the bonus token.",
        counted, lambda r: r.accept.tokens,
    )  # fmt: skip
    yield each(
        "sync_blocked", "seconds", "Time that the host waited for the device.",
        waited, lambda r: sum(sync.blocked_ns for sync in r.syncs) * _NS,
    )  # fmt: skip


def _rank(rank: RankRun) -> Labels:
    """Return the labels of a rank; a number that it does not have is none."""
    numbers = (("tp", rank.tp_rank), ("pp", rank.pp_rank), ("dp", rank.dp_rank))
    return tuple((f"{kind}_rank", str(number)) for kind, number in numbers if number >= 0)


def _total(name: str, unit: str, text: str, sums: Mapping[Labels, float]) -> Metric:
    return Metric(name, unit, text, True, tuple(sums.items()))


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
