"""A sweep as text, Markdown, CSV and JSON."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from specmap.codemap.launch import PathTest, Refusal
from specmap.codemap.sweep import Axis, Prediction, RunUsed, Sweep
from specmap.codemap.verdict import Verdict
from specmap.report.options import RenderOptions
from specmap.report.sweep_json import render_sweep_json
from specmap.report.sweep_rows import counted, rows
from specmap.report.sweep_table import render_sweep_csv, render_sweep_markdown
from specmap.report.sweep_text import render_sweep
from tests.sweep.sample import RUNNER, cell, refused, sweep

ROOT = Path(__file__).parents[2]
SCHEMA: dict[str, Any] = json.loads((ROOT / "docs/schema/sweep-1.0.schema.json").read_text("utf-8"))
AXES = (
    Axis("cuda-graph-max-bs", ("2", "8"), ("cuda_graph_max_bs",)),
    Axis("speculative-num-steps", ("2", "3", "4", "5"), ("speculative_num_steps",)),
    Axis("bs", ("1", "4")),
)
PREDICTED = Prediction(2000.0, 4_000_000.0, 2.0, ("cycle of run", "accept length of run"), True)


@pytest.fixture
def found() -> Sweep:
    """Steps 5 are refused; with a limit of 2, a batch of 4 loses its graphs."""
    cells = []
    for limit in ("2", "8"):
        for steps in ("2", "3", "4", "5"):
            for size in ("1", "4"):
                if steps == "5":
                    cells.append(refused(limit, steps, size))
                    continue
                lost = limit == "2" and size == "4"
                verdict = Verdict.EAGER if lost else Verdict.GRAPH
                cells.append(cell(limit, steps, steps=int(steps), size=int(size), verdict=verdict))
    cells[3] = replace(cells[3], prediction=PREDICTED)
    cells[5] = replace(cells[5], unranked="no run at bs 4")
    return sweep(AXES, *cells)


def test_cells_that_come_to_the_same_are_one_row(found: Sweep) -> None:
    made = [(row.values, row.count, row.cell.state.value) for row in rows(found)]
    assert made == [
        (("all", "5", "all"), 4, "refused"),
        (("2", "2..4", "4"), 3, "lost"),
        (("2", "2..4", "1"), 3, "kept"),
        (("8", "2..4", "all"), 6, "kept"),
    ]
    assert sum(row.count for row in rows(found)) == len(found.cells)


def test_the_text_says_what_is_lost_and_why(found: Sweep) -> None:
    text = render_sweep(found, RenderOptions(width=220))
    assert counted(found) == ("16 cells: 3 lost a graph, 4 refused at start, 9 kept every graph.")
    assert counted(found) in text
    assert "bs 4 > largest captured 2 (cuda_graph_runner.py:403)" in text
    assert "ValueError: topk > 1 | page_size > 1 <is> unstable (server_args.py:2457)" in text
    assert "assumed: the model is a Llama (--model-config)" in text
    assert "Ranked" not in text
    assert all(line == line.rstrip() for line in text.splitlines())


def test_the_text_ranks_where_there_are_runs(found: Sweep) -> None:
    used = RunUsed("run", {"speculative_num_steps": 3}, "EAGLEWorker", 4, 4_000_000, 2.0)
    bad = RunUsed("empty", {}, "", None, None, None, "it has no decode cycle")
    made = replace(found, runs=(used, bad), ranking_assumes=("prefill costs nothing",))
    text = render_sweep(made, RenderOptions(width=220))
    assert "4.00 ms" in text
    assert "1 cell: no run at bs 4" in text
    assert "empty: not used, it has no decode cycle" in text
    assert "run: EAGLEWorker, speculative_num_steps 3, bs 4, 4.00 ms a cycle" in text
    assert "prefill costs nothing" in text


def test_csv_has_one_line_a_cell(found: Sweep) -> None:
    lines = list(csv.DictReader(render_sweep_csv(found).splitlines()))
    assert len(lines) == 16
    lost = lines[3]
    assert (lost["cuda-graph-max-bs"], lost["speculative-num-steps"], lost["bs"]) == ("2", "3", "4")
    assert (lost["state"], lost["verify"]) == ("lost", "EAGER")
    assert (lost["tokens_per_second"], lost["cycle_ms"]) == ("2000.0", "4.0000")
    assert lines[5]["unranked"] == "no run at bs 4"
    assert lines[6]["why"].startswith("ValueError: topk > 1")


@pytest.mark.parametrize(
    ("value", "shown"),
    [("=cmd|a", "'=cmd|a"), ("@x", "'@x"), ("+1+x", "'+1+x"), ("-1", "-1"), ("a=b", "a=b")],
)
def test_a_spreadsheet_finds_no_formula(found: Sweep, value: str, shown: str) -> None:
    lines = csv.DictReader(render_sweep_csv(renamed(found, "2", value)).splitlines())
    assert {line["cuda-graph-max-bs"] for line in lines} == {shown, "8"}


def renamed(found: Sweep, value: str, other: str) -> Sweep:
    """Return a sweep with another text for a value of its first axis."""
    first, *rest = found.axes
    values = tuple(other if text == value else text for text in first.values)
    cells = tuple(
        replace(c, values=(other if c.values[0] == value else c.values[0], *c.values[1:]))
        for c in found.cells
    )
    return replace(found, axes=(replace(first, values=values), *rest), cells=cells)


def test_markdown_shows_messages_as_text(found: Sweep) -> None:
    text = render_sweep_markdown(found)
    assert "topk &gt; 1 \\| page_size &gt; 1 &lt;is&gt; unstable" in text
    tables = [line for line in text.splitlines() if line.startswith("| ")]
    widths = {line.replace("\\|", "").count("|") for line in tables[:3]}
    assert len(widths) == 1
    assert "| 2 | 2..4 | 4 | 3 | EAGLEWorker | EAGER | EAGER | EAGER |" in text
    odd = render_sweep_markdown(renamed(found, "2", "a<b>|c"))
    assert "| a&lt;b&gt;\\|c |" in odd
    assert "<b>" not in odd


def test_json_holds_every_cell_by_axis(found: Sweep) -> None:
    data = json.loads(render_sweep_json(found))
    assert data["schema"] == "1.0"
    assert data["findings"] is True
    assert data["cells"][3]["values"] == {
        "cuda-graph-max-bs": "2", "speculative-num-steps": "3", "bs": "4",
    }  # fmt: skip
    assert data["cells"][3]["state"] == "lost"
    assert data["cells"][3]["phases"][1]["span"]["line"] == 403
    assert data["cells"][3]["prediction"]["tokens_per_second"] == 2000.0
    assert data["cells"][6]["refusal"]["span"]["line"] == 2457


def described(found: Sweep) -> Any:
    """Return the JSON of a sweep after the published schema accepted it."""
    data = json.loads(render_sweep_json(found))
    jsonschema.Draft202012Validator(SCHEMA).validate(data)
    return data


def test_the_json_of_a_sweep_is_what_its_schema_says(found: Sweep) -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    tests = (PathTest("topk > 1", RUNNER, "unknown, taken as true"),)
    may = Refusal(False, "ValueError", "no such page size", RUNNER, tests, ("model config",))
    used = RunUsed("run", {"speculative_num_steps": 3}, "EAGLEWorker", 4, 4_000_000, 2.0)
    bad = RunUsed("empty", {}, "", None, None, None, "it has no decode cycle")
    cells = (replace(found.cells[0], may_refuse=(may,)), *found.cells[1:])
    data = described(replace(found, cells=cells, runs=(used, bad)))
    assert data["cells"][0]["may_refuse"][0]["tests"][0]["outcome"].startswith("unknown")
    assert data["cells"][3]["prediction"]["measured"] is True
    assert data["cells"][0]["prediction"] is None
    assert described(sweep(AXES))["cells"] == []


def test_the_schema_refuses_what_the_format_does_not_know(found: Sweep) -> None:
    data = described(found)
    data["cells"][0]["colour"] = "red"
    data["cells"][3]["state"] = "bored"
    data["cells"][3]["values"]["bs"] = 4
    data["cells"][5]["phases"][0]["verdict"] = "FAST"
    del data["cells"][6]["refusal"]["span"]["line"]
    broken = list(jsonschema.Draft202012Validator(SCHEMA).iter_errors(data))
    assert len(broken) == 5


def test_the_same_sweep_gives_the_same_bytes(found: Sweep) -> None:
    for render in (render_sweep_json, render_sweep_csv, render_sweep_markdown):
        assert render(found) == render(found)


def test_checks_that_need_the_same_are_counted(found: Sweep) -> None:
    several = tuple(
        Refusal(False, "ValueError", f"no {line}", replace(RUNNER, line=line), (), ("x",))
        for line in (5, 6)
    )
    cells = tuple(replace(cell, may_refuse=several) for cell in found.cells[:2])
    text = render_sweep(replace(found, cells=(*cells, *found.cells[2:])), RenderOptions(width=220))
    assert "2 checks need x, the first at" in text
    assert "[2 cells]" in text
