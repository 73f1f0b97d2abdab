"""A sweep for spreadsheets and pull requests: CSV with one line a cell, Markdown tables."""

from __future__ import annotations

import csv
import re
from io import StringIO

from specmap.codemap.sweep import Cell, Sweep
from specmap.report.sweep_rows import counted, phase_names, rows, verdict, why

_MS = 1e6
# What a spreadsheet takes for the beginning of a formula.
_FORMULA = frozenset("=+-@\t\r")
_SIGNED = re.compile(r"[+-]?[\d.]+")


def render_sweep_csv(sweep: Sweep) -> str:
    """Return one line a cell, the axes first; times in milliseconds, empty where not known."""
    names = phase_names(sweep)
    sink = StringIO()
    writer = csv.writer(sink, lineterminator="\n")
    writer.writerow(
        [*(axis.name for axis in sweep.axes), "state", "worker", *names, "why",
         "largest_captured", "tokens_per_request", "tokens_per_second", "cycle_ms",
         "accept_length", "rules", "unranked"]
    )  # fmt: skip
    for cell in sweep.cells:
        row = [
            *cell.values, cell.state.value, " or ".join(cell.workers),
            *(verdict(cell, name) for name in names), "; ".join(why(cell)),
            _number(cell.largest_captured), _number(cell.tokens_per_request),
            *_predicted(cell), cell.unranked,
        ]  # fmt: skip
        writer.writerow([_inert(text) for text in row])
    return sink.getvalue()


def _inert(text: str) -> str:
    """Return text that no spreadsheet takes for a formula."""
    return f"'{text}" if text[:1] in _FORMULA and not _SIGNED.fullmatch(text) else text


def _number(value: int | None) -> str:
    return "" if value is None else str(value)


def _predicted(cell: Cell) -> list[str]:
    made = cell.prediction
    if made is None:
        return ["", "", "", ""]
    return [
        f"{made.tokens_per_second:.1f}", f"{made.cycle_ns / _MS:.4f}",
        f"{made.accept_length:.4f}", "; ".join(made.rules),
    ]  # fmt: skip


def render_sweep_markdown(sweep: Sweep) -> str:
    """Return the tables of the text report, as GitHub shows them."""
    names = phase_names(sweep)
    lines = [f"### Sweep of `{sweep.target}`", "", counted(sweep), ""]
    assumed = [f"{a.text} (`{a.option}`)" for a in sweep.assumptions if a.option]
    lines += [f"Assumed: {text}  " for text in assumed] + ([""] if assumed else [])
    axes = [axis.name for axis in sweep.axes]
    if sweep.ranked:
        lines += _head([*axes, "tokens/s", "cycle, ms", "accept length", "from"])
        for cell in sweep.ranked:
            speed, cycle, length, rules = _predicted(cell)
            lines.append(_line([*map(_escaped, cell.values), speed, cycle, length, rules]))
        lines.append("")
        lines += [f"- assumed: {text}" for text in sweep.ranking_assumes]
        lines.append("")
    lines += _head([*axes, "cells", "worker", *names, "why"])
    for row in rows(sweep):
        verdicts = [verdict(row.cell, name) for name in names]
        worker = "refused" if row.cell.refusal is not None else " or ".join(row.cell.workers)
        lines.append(
            _line(
                [
                    *map(_escaped, row.values),
                    str(row.count),
                    worker,
                    *verdicts,
                    "<br>".join(map(_escaped, why(row.cell))),
                ]
            )
        )
    return "\n".join(lines) + "\n"


def _head(columns: list[str]) -> list[str]:
    return [_line(columns), _line(["---"] * len(columns))]


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _escaped(text: str) -> str:
    """Return text that no table or HTML reads as its own."""
    plain = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return plain.replace("|", "\\|").replace("\n", " ")
