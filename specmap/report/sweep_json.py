"""A sweep as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping

from specmap.codemap.sweep import Cell, Sweep
from specmap.report.outcome_json import plain

SCHEMA_VERSION = "1.0"


def render_sweep_json(sweep: Sweep) -> str:
    """Return the sweep as one JSON object, keys as the records call them.

    Each cell has its ``state``, and its ``values`` by axis.
    """
    data = plain(sweep)
    assert isinstance(data, dict)
    cells = [_cell(sweep, cell) for cell in sweep.cells]
    head = {"schema": SCHEMA_VERSION, "findings": sweep.findings}
    return json.dumps({**head, **data, "cells": cells}, indent=1) + "\n"


def _cell(sweep: Sweep, cell: Cell) -> Mapping[str, object]:
    data = plain(cell)
    assert isinstance(data, dict)
    names = [axis.name for axis in sweep.axes]
    return {**data, "state": cell.state.value, "values": dict(zip(names, cell.values, strict=True))}
