from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from specmap.codemap.event import LaunchCount, Launches, PhaseStats, RankRun, Run, State
from specmap.report.options import RenderOptions
from specmap.report.rank_names import rank_names
from specmap.report.run_json import render_run_json
from specmap.report.run_text import duration, render_ranks, render_run
from tests.report.golden import check
from tests.report.sample_run import EAGER_VERIFY, PREFILL, RUN, phase, rank

ROOT = Path(__file__).parents[2]
SCHEMA: dict[str, Any] = json.loads((ROOT / "docs/schema/run-1.0.schema.json").read_text("utf-8"))


def test_the_report_of_a_run() -> None:
    check("run.txt", render_run(RUN, RenderOptions(width=120)))


def test_the_phases_alone_show_the_rank_that_replays_least() -> None:
    lines = render_ranks(RUN.ranks, RenderOptions(width=120)).splitlines()
    assert lines[0] == "2 ranks · 91 cycles"
    assert len(lines) == 5
    verify = next(line for line in lines if "verify" in line)
    assert verify.split()[:3] == ["EAGLEWorker.verify", "EAGER", "18%"]
    assert verify.endswith("bs 4 > largest captured 2")
    assert max(map(len, lines)) < 120
    assert render_ranks((), RenderOptions()) == "0 ranks · 0 cycles\n"
    assert render_ranks(RUN.ranks[:1], RenderOptions()).startswith("1 rank · 91 cycles\n")


def test_launches_are_shown_where_they_were_counted() -> None:
    counted = replace(
        EAGER_VERIFY,
        launches=(
            LaunchCount(State.GRAPH, 16, Launches(16, 656, 0), Launches(1, 3, 0), 15),
            LaunchCount(State.EAGER, 74, Launches(0, 74 * 480, 74 * 64), Launches(0, 480, 64), 74),
        ),
    )
    run = replace(RUN, ranks=(rank(0, counted, phase("draft")),))
    lines = render_run(run, RenderOptions(width=160)).splitlines()
    (columns,) = (line for line in lines if "launches a pass" in line)
    assert columns.split("│")[-3].strip() == "launches a pass"
    assert [line.split("│")[-3].strip() for line in lines if "kernels" in line] == [
        "GRAPH: 1 graph + 3 kernels, 15 of 16", "EAGER: 480 kernels (64 collectives)",
    ]  # fmt: skip
    narrow = render_run(run, RenderOptions(width=80))
    assert "GRAPH 16" in narrow and "EAGER 74" in narrow
    assert "launches a pass" not in render_run(RUN, RenderOptions(width=160))
    jsonschema.Draft202012Validator(SCHEMA).validate(json.loads(render_run_json(run)))


def test_ranks_that_ended_in_the_same_cycle_are_named_together() -> None:
    """Engine.shutdown() kills all of them."""
    ranks = tuple(replace(RUN.ranks[0], tp_rank=n, finished=False) for n in range(8))
    last = replace(ranks[0], tp_rank=8, finished=False, cycles=92)
    text = render_run(replace(RUN, ranks=(*ranks, last)), RenderOptions(width=400))
    assert "records are missing (TP 0-7 after 91, TP 8 after 92 cycles)" in text


@pytest.mark.parametrize(
    ("rate", "said"),
    [(0.8349, "0.835"), (9.5, "9.50"), (80.0, "80.0"), (807.4, "807"), (2154.4, "2154")],
)
def test_a_slow_engine_has_a_rate_that_is_no_round_number(rate: float, said: str) -> None:
    assert RUN.budget is not None
    run = replace(RUN, budget=replace(RUN.budget, bound_tps=rate))
    assert f"at most {said} tokens/s" in render_run(run, RenderOptions(width=160))


def test_eighty_columns_break_no_reason_and_no_note_inside_a_word() -> None:
    words = set(render_run(RUN, RenderOptions(width=10_000)).split())
    lines = render_run(RUN, RenderOptions(width=80)).splitlines()
    assert max(map(len, lines)) <= 80
    added = {word for line in lines for word in line.split()} - words
    assert {word.strip("─┬┼┴┐┌└┘├┤╭╮╰╯│,:;") for word in added} <= {
        "", "target_prefill", "why", "not", "graph", "verify", "note",
        "EAGLEWorker.target_prefill", "EAGLEWorker.verify", "EAGLEWorker.draft",
    } | {word.strip(",:;") for word in words}  # fmt: skip


@pytest.mark.parametrize(
    ("salvaged", "said"),
    [
        (True, "killed, and every record was saved from its memory (TP 1 after 91 cycles)"),
        (False, "its memory is gone: up to 0.2 s of records are missing (TP 1 after 91 cycles)"),
    ],
)
def test_what_is_there_of_a_killed_rank_is_told(salvaged: bool, said: str) -> None:
    cut = replace(RUN.ranks[1], finished=False, salvaged=salvaged)
    text = render_run(replace(RUN, ranks=(RUN.ranks[0], cut)), RenderOptions(width=160))
    assert said in text
    assert ("memory" in render_run(RUN, RenderOptions(width=160))) is False


def test_narrow_and_coloured_reports_say_the_same_words() -> None:
    plain = render_run(RUN, RenderOptions(width=120)).split()
    coloured = render_run(RUN, RenderOptions(width=120, color=True))
    assert "\x1b[" in coloured
    assert "largest" in plain
    assert "captured" in render_run(RUN, RenderOptions(width=60))


def test_ranks_that_ran_alike_share_a_table() -> None:
    phases = (PREFILL, phase("draft"), phase("verify"))
    run = replace(RUN, ranks=tuple(rank(tp, *phases) for tp in range(8)), findings=())
    text = render_run(run, RenderOptions(width=120))
    assert text.count("│ draft ") == 1
    assert "EAGLEWorker, TP 0-7  91 cycles, figures of TP 0" in text
    cut = replace(run, ranks=(*run.ranks[:7], replace(run.ranks[7], cycles=11)))
    text = render_run(cut, RenderOptions(width=120))
    assert "EAGLEWorker, TP 0-7  11 to 91 cycles, figures of TP 0" in text


def test_ranks_that_launched_other_counts_have_tables_of_their_own() -> None:
    """One rank without counts, and one with another usual pass, are not "figures of TP 0"."""

    def launched(kernels: int) -> PhaseStats:
        each = Launches(0, kernels, 0)
        count = LaunchCount(State.GRAPH, 90, Launches(0, 90 * kernels, 0), each, 90)
        return replace(phase("verify"), launches=(count,) if kernels else ())

    counts = (2, 2, 200, 0)
    run = replace(RUN, ranks=tuple(rank(tp, launched(n)) for tp, n in enumerate(counts)))
    text = render_run(run, RenderOptions(width=120))
    assert [line for line in text.splitlines() if line.startswith("EAGLEWorker, TP")] == [
        "EAGLEWorker, TP 0, 1  91 cycles, figures of TP 0",
        "EAGLEWorker, TP 2  91 cycles",
        "EAGLEWorker, TP 3  91 cycles",
    ]


def ranks(*numbers: tuple[int, int]) -> list[RankRun]:
    return [replace(rank(tp), dp_rank=dp) for tp, dp in numbers]


@pytest.mark.parametrize(
    ("numbers", "said"),
    [
        ([(0, -1)], "TP 0"),
        ([(0, -1), (1, -1)], "TP 0, 1"),
        ([(0, 0), (1, 0), (0, 1), (1, 1)], "TP 0, 1, DP 0, 1"),
        ([(-1, -1)], "TP ?"),
        ([(0, -1), (1, -1), (3, -1)], "TP 0, 1, 3"),
    ],
)
def test_ranks_are_named_by_what_tells_them_apart(
    numbers: list[tuple[int, int]], said: str
) -> None:
    assert rank_names(ranks(*numbers)) == said


@pytest.mark.parametrize(
    ("time_ns", "said"),
    [(999, "999 ns"), (25_400, "25 us"), (4_700_000, "4.70 ms"), (2.5e9, "2.50 s")],
)
def test_times_have_the_unit_that_suits_them(time_ns: float, said: str) -> None:
    assert duration(time_ns) == said


def test_a_run_without_ranks_is_shown() -> None:
    empty = Run(None, (), (), ())
    assert render_run(empty, RenderOptions()) == "Run  0 ranks\n"
    jsonschema.Draft202012Validator(SCHEMA).validate(json.loads(render_run_json(empty)))


def test_the_json_of_a_run_is_what_its_schema_says() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    data = json.loads(render_run_json(RUN))
    jsonschema.Draft202012Validator(SCHEMA).validate(data)
    assert (data["schema"], data["failing"]) == ("1.0", True)
    assert data["ranks"][1]["phases"][2]["counts"] == {"GRAPH": 16, "EAGER": 74}
    assert data["ranks"][0]["accept"]["length"] == 2.3
    assert data["findings"][0]["problem"] == "rank-eager"


def test_the_schema_refuses_what_the_format_does_not_know() -> None:
    data = json.loads(render_run_json(RUN))
    data["ranks"][0]["colour"] = "red"
    data["findings"][0]["problem"] = "boredom"
    data["ranks"][1]["phases"][2]["counts"]["FAST"] = 1
    broken = list(jsonschema.Draft202012Validator(SCHEMA).iter_errors(data))
    assert len(broken) == 3


def test_every_key_of_the_schema_is_described() -> None:
    todo: list[Any] = [SCHEMA]
    described = 0
    while todo:
        value = todo.pop()
        if isinstance(value, dict):
            for entry in value.get("properties", {}).values():
                described += bool(entry["description"])
            todo += value.values()
        elif isinstance(value, list):
            todo += value
    assert described > 100
