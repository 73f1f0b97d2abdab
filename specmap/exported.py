"""Composes the exports of a recorded run: folder -> run or passes -> another tool's format."""

from __future__ import annotations

import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

from specmap.codemap.event import Run
from specmap.errors import OutputError
from specmap.pipeline import write_file, write_parts
from specmap.report.run_timeline import CycleSlice, Lane, RankTimeline, lanes_of
from specmap.trace.names import TraceNames
from specmap.trace.plan import WrapPlan
from specmap.trace.read import cycles_of, load_plan, passes_of
from specmap.trace.spool import ranks_in, salvage
from specmap.traced import trace_names

_METRICS_PATH = "/v1/metrics"
_SEND_SECONDS = 30


def chrome(folder: Path, run: Run, place: Path) -> str:
    """Write the timeline in Chrome's format; return a line that says so.

    Raises:
        TraceError: it is no run.
        OutputError: the file cannot be written.
    """
    from specmap.report.run_chrome import render_chrome

    return _written(place, render_chrome(_lanes(folder)))


def perfetto(folder: Path, run: Run, place: Path) -> str:
    """Write the timeline in Perfetto's format; return a line that says so.

    Raises:
        TraceError: it is no run.
        OutputError: the file cannot be written.
    """
    from specmap.report.run_perfetto import render_perfetto

    return _written(place, render_perfetto(_lanes(folder)))


def prometheus(folder: Path, run: Run, place: Path) -> str:
    """Write the counters for a textfile collector; return a line that says so.

    Raises:
        TraceError: it is no run.
        OutputError: the file cannot be written.
    """
    from specmap.report.run_metrics import render_prometheus

    write_file(place, render_prometheus(run).encode())
    return f"wrote {place}"


def otlp(folder: Path, run: Run, url: str) -> str:
    """Send the counters to an OpenTelemetry collector by HTTP; return a line that says so.

    Raises:
        TraceError: it is no run.
        OutputError: the collector cannot be reached, or refuses.
    """
    from specmap.report.run_metrics import render_otlp

    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise OutputError(f"--otlp {url!r}: expected http://HOST:4318")
    whole = url.rstrip("/") + ("" if parts.path.strip("/") else _METRICS_PATH)
    request = urllib.request.Request(
        whole,
        render_otlp(run, time.time_ns()).encode(),
        {"Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=_SEND_SECONDS) as answer:
            answer.read()
    except (urllib.error.URLError, OSError) as error:
        reason = getattr(error, "reason", None) or error
        code = f"HTTP {error.code}, " if isinstance(error, urllib.error.HTTPError) else ""
        raise OutputError(f"the collector at {whole} did not take it: {code}{reason}") from None
    return f"sent to {whole}"


EXPORTS: dict[str, Callable[[Path, Run, Path], str] | Callable[[Path, Run, str], str]] = {
    "chrome": chrome,
    "perfetto": perfetto,
    "prometheus": prometheus,
    "otlp": otlp,
}


def _lanes(folder: Path) -> Iterator[Lane]:
    plan, names = load_plan(folder), trace_names()
    ranks = ranks_in(folder)
    for name in ranks:
        salvage(folder, name)
    return lanes_of(_timeline(folder, name, plan, names) for name in ranks)


def _timeline(folder: Path, name: str, plan: WrapPlan, names: TraceNames) -> RankTimeline:
    cycles = (
        CycleSlice(c.number, c.start_ns, c.entry_ns, c.size, c.worker)
        for c in cycles_of(folder, name, plan, names)
    )
    return RankTimeline(name, cycles, passes_of(folder, name, plan, names))


def _written(place: Path, parts: Iterable[bytes]) -> str:
    """Write a long file part by part, beside its place, and move it there.

    Raises:
        OutputError: the file cannot be written; nothing is left of it.
    """
    write_parts(place, parts)
    return f"wrote {place}"
