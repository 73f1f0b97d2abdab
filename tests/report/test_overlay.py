from __future__ import annotations

import re
import shutil
from dataclasses import replace

import pytest

from specmap.codemap.event import Run, State
from specmap.codemap.graph import CodeMap
from specmap.report.options import RenderOptions
from specmap.report.overlay import render, render_svg
from specmap.report.palette import VERDICTS
from tests.report.sample_run import phase, rank


def run_of(sample: CodeMap) -> Run:
    """Two ranks of EAGLEWorker: draft replayed, verify did both, nothing else ran."""
    worker = next(w for w in sample.workers if w.name == "EAGLEWorker")
    verify = next(p for p in worker.phases if p.name == "verify")
    sink = verify.arms[0].chain[-1][0]
    mixed = replace(phase("verify"), counts={State.GRAPH: 80, State.EAGER: 10})
    ranks = tuple(
        replace(rank(tp, phase("draft"), mixed), calls={sink: 80, verify.holder: 90})
        for tp in (0, 1)
    )
    return Run("0.5.9", (), ranks, ())


def nodes(text: str) -> dict[str, str]:
    """Return the attributes of each labelled node, by the first line of its label."""
    found = re.findall(r'^\s*\w+ \[label="?([^"\\]+)(.*)\]$', text, re.M)
    return dict(found)


def test_phases_show_counts_of_all_ranks_in_the_colour_of_their_state(sample: CodeMap) -> None:
    drawn = nodes(render(sample, run_of(sample), RenderOptions()))
    assert "180 GRAPH" not in drawn["verify"]
    assert "160 GRAPH, 20 EAGER" in drawn["verify"]
    assert VERDICTS["depends"][0] in drawn["verify"]
    assert "180 GRAPH" in drawn["draft"]
    assert VERDICTS["GRAPH"][0] in drawn["draft"]
    assert "not exercised" in drawn["draft_extend"]
    assert VERDICTS["NOT_RUN"][0] in drawn["draft_extend"]


def test_functions_and_sinks_show_their_calls(sample: CodeMap) -> None:
    text = render(sample, run_of(sample), RenderOptions())
    assert text.count("160 calls") == 2  # the sink and the function that holds it
    assert text.count("180 calls") == 1


def test_only_workers_that_ran_are_drawn(sample: CodeMap) -> None:
    text = render(sample, run_of(sample), RenderOptions())
    assert "EAGLEWorker" in text
    assert "NGRAMWorker" not in text


@pytest.mark.skipif(shutil.which("dot") is None, reason="needs Graphviz's dot program")
def test_the_overlay_is_drawn(sample: CodeMap) -> None:
    assert b"160 calls" in render_svg(sample, run_of(sample), RenderOptions())
