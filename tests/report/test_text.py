from __future__ import annotations

import re
from dataclasses import replace

import pytest

from specmap.codemap.condition import Atom, AtomKind, Leaf
from specmap.codemap.graph import CodeMap
from specmap.report import RenderOptions
from specmap.report.text import render

EAGLE = RenderOptions(workers=("EAGLEWorker",))
METHODS = {
    "forward_batch_generation": 278,
    "forward_target_extend": 357,
    "draft": 532,
    "draft_forward": 615,
    "verify": 691,
    "forward_draft_extend": 862,
    "forward_draft_extend_after_decode": 902,
}


def test_the_page_of_a_worker_shows_its_methods_with_their_lines(sample: CodeMap) -> None:
    page = render(sample, EAGLE)
    for name, line in METHODS.items():
        assert re.search(rf"\b{line} │ EAGLEWorker\.{name} ", page), name


def test_the_page_shows_verify_down_to_the_replay_of_the_graph(sample: CodeMap) -> None:
    page = render(sample, RenderOptions(("EAGLEWorker",), ("verify",)))
    chain = page[page.index("GRAPH when") : page.index("PIECEWISE when")]
    hops = re.findall(r"(\S+) +\S+\.py:(\d+)$", chain, re.MULTILINE)
    assert hops[-6:] == [
        ("EAGLEWorker.forward_batch_generation", "316"),
        ("EAGLEWorker.verify", "716"),
        ("TpModelWorker.forward_batch_generation", "456"),
        ("ModelRunner.forward", "2401"),
        ("ModelRunner._forward_raw", "2463"),
        ("CudaGraphRunner.replay", "866"),
    ]
    assert "self.graphs[graph_key].replay() on line 866" in chain


def test_the_six_terms_of_the_decision_have_their_lines(sample: CodeMap) -> None:
    page = render(sample, RenderOptions(("EAGLEWorker",), ("verify",)))
    decision = page[page.index("decision can_run") : page.index("decision capture")]
    terms = re.findall(r"^    - (.*?) {2,}(?:part of \w+ +)?(\d+)$", decision, re.MULTILINE)
    assert [int(line) for _, line in terms] == [403, 407, 412, 431, 427, 435]


def test_the_constant_flag_is_reported_and_not_of_verify(sample: CodeMap) -> None:
    page = render(sample, EAGLE)
    row = page[page.index(" 308 │") : page.index(" 336 │")]
    assert "target_prefill │ reported" in row
    assert "constant False" in row
    words = " ".join(re.sub("[│\\n]", " ", row).split())
    assert "line 290:" in words
    assert "batch.forward_mode.is_extend() or" in words
    assert "verify" not in row


@pytest.mark.parametrize("width", [80, 100, 160])
def test_nothing_is_wider_than_asked(sample: CodeMap, width: int) -> None:
    for options in (RenderOptions(width=width), RenderOptions(("EAGLEWorker",), width=width)):
        assert max(map(len, render(sample, options).splitlines())) <= width


def test_a_long_condition_is_shown_whole(sample: CodeMap) -> None:
    worker = sample.workers[1]
    words = [f"name_{index:03d}" for index in range(60)]
    atom = Atom(" == ".join(words), AtomKind.UNKNOWN)
    phase = replace(worker.phases[0], graph_when=Leaf(atom), arms=())
    changed = replace(sample, workers=(replace(worker, phases=(phase,), selected_when=Leaf(atom)),))
    page = render(changed, RenderOptions(("NGRAMWorker",)))
    assert [word for word in words if word not in page] == []
    assert "\N{HORIZONTAL ELLIPSIS}" not in page


def test_markup_in_source_text_is_printed_as_it_is(sample: CodeMap) -> None:
    atom = Atom("x[bold] and ':smile:' in '[/red]'", AtomKind.BATCH)
    worker = replace(sample.workers[1], selected_when=Leaf(atom))
    page = render(replace(sample, workers=(worker,)), RenderOptions(("NGRAMWorker",)))
    assert atom.text in page


def test_colour_is_an_option_and_changes_no_word(sample: CodeMap) -> None:
    plain = render(sample, EAGLE)
    coloured = render(sample, replace(EAGLE, color=True))
    assert "\x1b" not in plain
    assert "\x1b[" in coloured
    stripped = re.sub(r"\x1b\[[\d;]*m", "", coloured)
    assert [line.rstrip() for line in stripped.splitlines()] == plain.splitlines()


def test_the_overview_has_every_worker_and_says_how_to_go_on(sample: CodeMap) -> None:
    page = render(sample, RenderOptions())
    assert re.search(r"│ NGRAMWorker .* NOT_RUN .* depends ", page)
    assert "--worker EAGLEWorker" in page
    assert "3  host synchronisations: 2 explicit, 1 implicit; 2 removable" in page
