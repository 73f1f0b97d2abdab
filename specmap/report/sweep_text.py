"""A sweep as text for people: what loses a graph and why, and which cells are fastest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from specmap.codemap.launch import Refusal
from specmap.codemap.sweep import CellState, RunUsed, Sweep
from specmap.codemap.verdict import PhaseName
from specmap.report.options import RenderOptions
from specmap.report.outcome_text import counted_refusals
from specmap.report.sweep_rows import counted, distinct, phase_names, rows, verdict, why
from specmap.report.text_parts import console, heading, indent, table, word

_SHOWN = 6
_MS = 1e6


def render_sweep(sweep: Sweep, options: RenderOptions) -> str:
    """Return the report; trailing spaces are removed."""
    out, sink = console(options)
    for block in _blocks(sweep):
        out.print(block)
    return "\n".join(line.rstrip() for line in sink.getvalue().splitlines()).rstrip() + "\n"


def _blocks(sweep: Sweep) -> Iterator[RenderableType]:
    yield heading(
        sweep.target,
        f"platform {sweep.platform} · {len(sweep.cells)} cells of {_launches(sweep)}",
    )
    for assumption in sweep.assumptions:
        if assumption.option:
            yield Text(f"assumed: {assumption.text} ({assumption.option})")
    for axis in sweep.axes:
        yield indent(Text(f"{axis.name}: {', '.join(axis.values)}", style="dim"))
    yield Text(counted(sweep), style="bold")
    if sweep.runs:
        yield from _ranking(sweep)
    yield ""
    yield heading("Cells that come to the same")
    yield _table(sweep)
    yield from _lines("Preflight", _counted_lines(sweep, "concerns"))
    yield from _lines("Overwritten by SGLang's argument code", _counted_lines(sweep, "overwritten"))
    yield from _lines("May refuse to start", _refusals(sweep))
    yield from _lines("Assumed", _assumed(sweep))
    yield from _lines("Read", list(sweep.notes))


def _launches(sweep: Sweep) -> str:
    return f"{sweep.launches} launch{'es' if sweep.launches != 1 else ''}"


def _table(sweep: Sweep) -> RenderableType:
    names = phase_names(sweep)
    columns = [*(axis.name for axis in sweep.axes), "cells", "worker", *names, "why"]
    lines: list[Sequence[str | Text]] = []
    for row in rows(sweep):
        worker = " or ".join(row.cell.workers)
        if row.cell.state is CellState.REFUSED:
            worker = "refused"
        verdicts = [word(verdict(row.cell, PhaseName(name))) for name in names]
        lines.append(
            [*row.values, str(row.count), worker, *verdicts, Text("\n".join(why(row.cell)))]
        )
    return table(columns, lines, wide="why")


def _ranking(sweep: Sweep) -> Iterator[RenderableType]:
    columns = [*(axis.name for axis in sweep.axes), "tokens/s", "cycle", "accept length", "from"]
    lines: list[Sequence[str | Text]] = []
    for cell in sweep.ranked:
        made = cell.prediction
        assert made is not None
        speed = f"{made.tokens_per_second:.0f}"
        cycle = f"{made.cycle_ns / _MS:.2f} ms"
        lines.append(
            [*cell.values, speed, cycle, f"{made.accept_length:.2f}", Text("\n".join(made.rules))]
        )
    if lines:
        yield ""
        yield heading("Ranked by predicted tokens a second")
        yield table(columns, lines, wide="from")
    unranked: dict[str, int] = {}
    for cell in sweep.cells:
        if cell.unranked:
            unranked[cell.unranked] = unranked.get(cell.unranked, 0) + 1
    yield from _lines("Not ranked", [f"{_cells(n)}: {text}" for text, n in unranked.items()])
    yield from _lines("Runs", [_run(run) for run in sweep.runs])
    yield from _lines("The ranking assumes", list(sweep.ranking_assumes))


def _run(run: RunUsed) -> str:
    settings = ", ".join(f"{name} {value}" for name, value in run.settings.items())
    if run.unused:
        return f"{run.name}: not used, {run.unused}"
    cycle = f"{run.cycle_ns / _MS:.2f} ms a cycle" if run.cycle_ns is not None else ""
    accept = f"accept length {run.accept_length:.2f}" if run.accept_length else "no accept length"
    parts = [run.worker, settings, f"bs {run.batch_size}", cycle, accept]
    return f"{run.name}: {', '.join(filter(None, parts))}"


def _cells(count: int) -> str:
    return f"{count} cell{'s' if count != 1 else ''}"


def _counted_lines(sweep: Sweep, field: str) -> list[str]:
    found = distinct(sweep, field)
    lines = [f"{text}  [{_cells(count)}]" for text, count in found[:_SHOWN]]
    return [*lines, *_more(len(found))]


def _more(count: int) -> list[str]:
    return [f"and {count - _SHOWN} more that JSON lists"] if count > _SHOWN else []


def _refusals(sweep: Sweep) -> list[str]:
    """Say what may stop the start; checks that need the same are counted, not listed."""
    found: dict[tuple[str, ...], dict[Refusal, None]] = {}
    cells: dict[tuple[str, ...], int] = {}
    for cell in sweep.cells:
        for refusal in cell.may_refuse:
            found.setdefault(refusal.reasons, {})[refusal] = None
        for reasons in {refusal.reasons for refusal in cell.may_refuse}:
            cells[reasons] = cells.get(reasons, 0) + 1
    lines = [f"{counted_refusals(list(g))}  [{_cells(cells[r])}]" for r, g in found.items()]
    return [*lines[:_SHOWN], *_more(len(found))]


def _assumed(sweep: Sweep) -> list[str]:
    keyed = [f"{a.text} (--batch {a.key}=yes)" for a in sweep.assumptions if a.key]
    other = sum(not (a.key or a.option) for a in sweep.assumptions)
    rest = [f"{other} facts about the machine and the model; JSON lists them"] if other else []
    return [*keyed, *rest]


def _lines(title: str, lines: Sequence[str]) -> Iterator[RenderableType]:
    if lines:
        yield ""
        yield heading(title)
        for line in lines:
            yield indent(Text(line))
