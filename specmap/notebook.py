"""What a notebook shows of the records: small HTML tables, every text escaped.

The shared model knows nothing of reports, so the public API adds ``_repr_html_`` to its
classes when a name of it is first used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from html import escape
from typing import TypeVar

from specmap.codemap.event import Run
from specmap.codemap.finding import LintReport
from specmap.codemap.graph import CodeMap
from specmap.codemap.outcome import Outcome
from specmap.codemap.sweep import Sweep

_METHOD = "_repr_html_"
_MOST_ROWS = 50
# Readable on a light and on a dark page.
_COLORS = {
    "GRAPH": "#2e9e4f",
    "PIECEWISE": "#2196c9",
    "EAGER": "#e0563a",
    "UNKNOWN": "#a45bc0",
    "depends": "#c98a00",
}
_Record = TypeVar("_Record")


def register() -> None:
    """Give the records their HTML."""
    _give(CodeMap, map_html)
    _give(Outcome, outcome_html)
    _give(Run, run_html)
    _give(LintReport, lint_html)
    _give(Sweep, sweep_html)


def _give(cls: type[_Record], html: Callable[[_Record], str]) -> None:
    setattr(cls, _METHOD, html)


def map_html(found: CodeMap) -> str:
    """Return the phases of a map's workers."""
    from specmap.report.wording import endings, verdict_word

    rows = [
        (worker.name, phase.name.value, verdict_word(phase), endings(phase))
        for worker in found.workers
        for phase in worker.phases
    ]
    return _table(f"{found.target}, platform {found.platform}",
                  ("worker", "phase", "verdict", "ends in"), rows)  # fmt: skip


def outcome_html(found: Outcome) -> str:
    """Return the verdicts of a launch, or why it is refused."""
    from specmap.report.outcome_text import decided, model_lines, place

    title = f"{found.target}, batch of {found.batch_size or 1}"
    refusal = found.refusal
    if refusal is not None:
        row = ("NOT_RUN", f"{refusal.error}: {refusal.message}", place(refusal.span))
        return _table(title, ("verdict", "the server refuses to start", "line"), [row])
    rows = [
        (worker.name, phase.name.value, phase.verdict.value, decided(phase).plain)
        for worker in found.workers
        for phase in worker.phases
    ]
    notes = [*model_lines(found), *(concern.message for concern in found.concerns)]
    return _table(title, ("worker", "phase", "verdict", "decided by"), rows, notes)


def run_html(found: Run) -> str:
    """Return the phases of a run's ranks, with states, times and the first reason."""
    from specmap.report.run_text import duration

    rows = []
    for rank in found.ranks:
        for phase in rank.phases:
            states = ", ".join(f"{n} {state.value}" for state, n in phase.counts.items())
            gpu = duration(phase.gpu_ns / phase.gpu_passes) if phase.gpu_passes else ""
            why = phase.reasons[0].text if phase.reasons else ""
            name = f"{phase.worker}.{phase.phase}"
            rows.append(
                (f"TP {rank.tp_rank}", name, states, duration(phase.median_cpu_ns), gpu, why)
            )
    title = f"Run of SGLang {found.release or '?'}, {len(found.ranks)} ranks"
    columns = ("rank", "phase", "passes", "CPU", "GPU", "why not graph")
    return _table(title, columns, rows, [finding.message for finding in found.findings])


def lint_html(found: LintReport) -> str:
    """Return the findings that count."""
    rows = [
        (f.rule.id, f.severity.value, f"{f.match.span.file}:{f.match.span.line}", f.match.message)
        for f in found.new
    ]
    title = f"{found.target}: {len(rows)} finding{'' if len(rows) == 1 else 's'}"
    return _table(title, ("rule", "severity", "place", "what"), rows)


def sweep_html(found: Sweep) -> str:
    """Return a ranking where there is one, and the cells that come to the same as rows."""
    from specmap.report.sweep_rows import counted, phase_names, rows, verdict, why

    names = phase_names(found)
    axes = [axis.name for axis in found.axes]
    parts = []
    if found.ranked:
        ranked = [
            (*cell.values, f"{made.tokens_per_second:.0f}", "\n".join(made.rules))
            for cell in found.ranked
            if (made := cell.prediction) is not None
        ]
        columns = (*axes, "tokens/s", "from")
        parts.append(_table("Ranked", columns, ranked, found.ranking_assumes))
    cells = []
    for row in rows(found):
        worker = "refused" if row.cell.refusal is not None else " or ".join(row.cell.workers)
        verdicts = (verdict(row.cell, name) for name in names)
        reasons = "\n".join(why(row.cell))
        cells.append((*row.values, str(row.count), worker, *verdicts, reasons))
    assumed = [f"assumed: {a.text} ({a.option})" for a in found.assumptions if a.option]
    title = f"{found.target}, {counted(found)}"
    parts.append(_table(title, (*axes, "cells", "worker", *names, "why"), cells, assumed))
    return "".join(parts)


def _table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], notes: Iterable[str] = ()
) -> str:
    """Return a table; rows beyond the first fifty are counted."""
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows[:_MOST_ROWS])
    more = len(rows) - _MOST_ROWS
    below = [*([f"and {more} more rows"] if more > 0 else []), *notes]
    lines = "".join(f"<div>{escape(line)}</div>" for line in below)
    return (
        f"<table><caption>{escape(title)}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table>{lines}"
    )


def _cell(text: str) -> str:
    color = _COLORS.get(text)
    style = f"color:{color};font-weight:bold" if color else "text-align:left"
    content = escape(text).replace("\n", "<br>")
    return f'<td style="{style}">{content}</td>'
