"""Cells of a sweep that come to the same, as few rows: what text and Markdown show."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from specmap.codemap.sweep import Axis, Cell, CellPhase, CellState, Sweep
from specmap.codemap.verdict import PhaseName, Verdict
from specmap.report.outcome_text import place

ALL = "all"
_LONG_RUN = 3
_Key = tuple[object, ...]
_Box = tuple[frozenset[int], ...]


@dataclass(frozen=True, slots=True)
class Row:
    """Cells that come to the same: for each axis its values, and one of the cells.

    The cells are all combinations of these values.
    """

    values: tuple[str, ...]
    cell: Cell
    count: int


def rows(sweep: Sweep) -> list[Row]:
    """Return the cells as rows, the worst first, then in the order of the grid."""
    places = [{value: index for index, value in enumerate(a.values)} for a in sweep.axes]
    groups: dict[_Key, dict[tuple[int, ...], Cell]] = {}
    for cell in sweep.cells:
        at = tuple(where[value] for where, value in zip(places, cell.values, strict=True))
        groups.setdefault(_key(cell), {})[at] = cell
    found: list[tuple[int, tuple[int, ...], Row]] = []
    order = list(CellState)
    for cells in groups.values():
        for box in _boxes(list(cells), len(sweep.axes)):
            first = tuple(min(indexes) for indexes in box)
            count = 1
            for indexes in box:
                count *= len(indexes)
            values = tuple(_said(axis, i) for axis, i in zip(sweep.axes, box, strict=True))
            row = Row(values, cells[first], count)
            found.append((order.index(cells[first].state), first, row))
    return [row for _, _, row in sorted(found, key=lambda item: item[:2])]


def _key(cell: Cell) -> _Key:
    """Return what a cell comes to; why a phase replays is left out."""
    kept = (Verdict.GRAPH, Verdict.PIECEWISE)
    phases = tuple(
        (p.name, p.verdict, *(() if p.verdict in kept else (p.reason, p.span))) for p in cell.phases
    )
    refused = cell.refusal and (cell.refusal.message, cell.refusal.span)
    return (
        cell.state,
        cell.workers,
        phases,
        refused,
        cell.missing,
        cell.unmet,
        cell.notes,
        cell.too_large,
    )


def _boxes(cells: list[tuple[int, ...]], axes: int) -> list[_Box]:
    """Cover cells with boxes, joined along the last axis first."""
    boxes: list[_Box] = [tuple(frozenset({i}) for i in cell) for cell in cells]
    for axis in reversed(range(axes)):
        joined: dict[_Box, frozenset[int]] = {}
        for box in boxes:
            rest = (*box[:axis], *box[axis + 1 :])
            joined[rest] = joined.get(rest, frozenset()) | box[axis]
        boxes = [(*rest[:axis], values, *rest[axis:]) for rest, values in joined.items()]
    return boxes


def _said(axis: Axis, indexes: frozenset[int]) -> str:
    """Write the values of a row: ``1..5``, ``2, 4``, ``all``."""
    if len(axis.values) > 1 and len(indexes) == len(axis.values):
        return ALL
    values = [axis.values[index] for index in sorted(indexes)]
    parts: list[str] = []
    for run in _runs(values):
        parts += [f"{run[0]}..{run[-1]}"] if len(run) >= _LONG_RUN else run
    return ", ".join(parts)


def _runs(values: Sequence[str]) -> Iterator[list[str]]:
    run: list[str] = []
    for value in values:
        follows = run and value.isdecimal() and run[-1].isdecimal()
        if follows and int(value) == int(run[-1]) + 1:
            run.append(value)
            continue
        if run:
            yield run
        run = [value]
    if run:
        yield run


def phase_names(sweep: Sweep) -> tuple[PhaseName, ...]:
    """Return the phases that any cell has, in the order of a cycle."""
    there = {phase.name for cell in sweep.cells for phase in cell.phases}
    return tuple(name for name in PhaseName if name in there)


def verdict(cell: Cell, name: PhaseName) -> str:
    """Return the verdict of a phase, "" where the cell has no such phase."""
    return next((p.verdict.value for p in cell.phases if p.name is name), "")


def why(cell: Cell) -> list[str]:
    """Say what decides a cell, one line for each reason."""
    if cell.refusal is not None:
        return [f"{cell.refusal.error}: {cell.refusal.message} ({place(cell.refusal.span)})"]
    said = []
    groups: dict[str, list[CellPhase]] = {}
    for phase in cell.phases:
        if _decided(phase):
            groups.setdefault(_decided(phase), []).append(phase)
    for text, phases in groups.items():
        names = ", ".join(phase.name.value for phase in phases)
        places = ", ".join(dict.fromkeys(_brief(phase) for phase in phases if phase.span))
        where = f" ({places})" if places else ""
        said.append(f"{text}{where}" if len(groups) == 1 else f"{names}: {text}{where}")
    if len(cell.workers) > 1:
        said.append(f"worker not known: {' or '.join(cell.workers)}")
        said += [f"settled by {reason}" for reason in cell.missing]
    return [*said, *cell.unmet, *cell.notes, *filter(None, (cell.too_large,))]


def _decided(phase: CellPhase) -> str:
    """Return why a phase does not surely replay, "" where it does or has nothing to run."""
    if phase.verdict is Verdict.UNKNOWN:
        needs = f"; settled by {', '.join(phase.missing)}" if phase.missing else ""
        return f"{phase.reason}{needs}"
    return phase.reason if phase.verdict is Verdict.EAGER else ""


def _brief(phase: CellPhase) -> str:
    return place(phase.span).rpartition("/")[2]


def counted(sweep: Sweep) -> str:
    """Say in a sentence how many cells come to what."""
    said = {
        CellState.LOST: "lost a graph",
        CellState.REFUSED: "refused at start",
        CellState.UNKNOWN: "not settled",
        CellState.EAGER: "without a graph to lose",
        CellState.PLAIN: "without speculation",
        CellState.KEPT: "kept every graph",
    }
    counts = {state: sum(c.state is state for c in sweep.cells) for state in said}
    parts = [f"{counts[state]} {text}" for state, text in said.items() if counts[state]]
    cells = "cell" if len(sweep.cells) == 1 else "cells"
    return f"{len(sweep.cells)} {cells}: {', '.join(parts)}."


def distinct(sweep: Sweep, field: str) -> list[tuple[str, int]]:
    """Return each text of a field of the cells with the number of cells that say it."""
    found: dict[str, int] = {}
    for cell in sweep.cells:
        for text in getattr(cell, field):
            found[text] = found.get(text, 0) + 1
    return list(found.items())
