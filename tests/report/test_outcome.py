from __future__ import annotations

import json
from dataclasses import replace

import pytest

from specmap.codemap.explanation import (
    Alternative,
    Clause,
    Explanation,
    Hop,
    Joined,
    Likely,
    Need,
    PhaseReason,
    PlaceReason,
    Route,
    SettingChange,
)
from specmap.codemap.graph import Guard
from specmap.codemap.launch import Refusal
from specmap.codemap.outcome import TermSource, TermValue
from specmap.codemap.source import Span
from specmap.codemap.sweep import CellPhase
from specmap.codemap.verdict import PhaseName, SinkKind, Verdict
from specmap.report.explanation_text import render_explanation
from specmap.report.options import RenderOptions
from specmap.report.outcome_json import render_explanation_json, render_outcome_json
from specmap.report.outcome_text import ranges, render_outcome
from specmap.report.text import render
from tests.report.sample_outcome import BACKEND, LIMIT, REFUSAL, RUNNER, WORKER, outcome
from tests.small_map import small_map

WIDE = RenderOptions(width=200)


def test_one_word_a_phase_with_the_line_and_the_numbers() -> None:
    text = render_outcome(outcome(), WIDE)
    [verify] = [line for line in text.splitlines() if "│ verify" in line]
    assert "EAGER" in verify
    assert "bs 1-2 GRAPH, bs 3-48 EAGER" in verify
    assert "model_executor/cuda_graph_runner.py:787" in text
    assert "bs 4 > largest captured 2" in text
    assert "admission 48 > 2" in text
    assert "verify: expected GRAPH, found EAGER" in text


def test_what_is_not_known_says_what_it_needs() -> None:
    text = render_outcome(outcome(), WIDE)
    assert "TritonAttnBackend) is not known (needs model config)" in text
    assert "model config (--model-config)" in text


def test_a_refusal_is_the_verdict() -> None:
    text = render_outcome(outcome(refusal=REFUSAL), WIDE)
    assert "NOT_RUN  the server refuses to start" in text
    assert "ValueError: no tree here (server_args.py:9)" in text
    assert "Captured" not in text


def test_a_partial_map_does_not_say_that_nothing_speculates() -> None:
    """Python could not parse the worker's own file: it may well be the one that runs."""
    unread = "the map is partial, not read: sglang/srt/speculative/eagle_worker.py:7 (syntax)"
    text = render_outcome(replace(outcome(), workers=(), partial=unread), WIDE)
    assert f"No worker is found for this command, and {unread}." in text
    assert "has no speculation" not in text
    whole = render_outcome(replace(outcome(), workers=(), partial=""), WIDE)
    assert "No worker runs: the launch has no speculation" in whole


def test_json_has_the_worker_the_findings_and_everything_else() -> None:
    data = json.loads(render_outcome_json(outcome()))
    assert (data["worker"], data["findings"]) == ("EAGLEWorkerV2", True)
    verify = data["workers"][0]["phases"][0]
    assert (verify["name"], verify["verdict"]) == ("verify", "EAGER")
    assert verify["deciding"][0]["note"] == "bs 4 > largest captured 2"
    assert verify["deciding"][0]["span"]["line"] == 787
    assert data["captured"]["sizes"] == [1, 2]
    assert json.loads(render_outcome_json(outcome(refusal=REFUSAL)))["worker"] is None


def test_the_same_outcome_gives_the_same_bytes() -> None:
    assert render_outcome_json(outcome()) == render_outcome_json(outcome())
    assert render_outcome(outcome(), WIDE) == render_outcome(outcome(), WIDE)


def test_findings() -> None:
    """A phase that could replay and runs eager is one; prefill and a backend without a graph not.

    Verify is one in any case: a fork whose verify asks no runner has lost its graph.
    """
    quiet = replace(outcome(expected=Verdict.EAGER), concerns=())
    assert quiet.findings
    [worker] = quiet.workers
    for name, lost in ((PhaseName.DRAFT_EXTEND, False), (PhaseName.VERIFY, True)):
        eager = replace(worker.phases[0], name=name, could_replay=False)
        assert replace(quiet, workers=(replace(worker, phases=(eager,)),)).findings is lost
        assert CellPhase(name, eager.verdict, could_replay=False).lost is lost
    prefill = replace(worker.phases[0], name=PhaseName.TARGET_PREFILL)
    assert not replace(quiet, workers=(replace(worker, phases=(prefill,)),)).findings
    unmet = replace(outcome(), concerns=(), workers=())
    assert unmet.findings


@pytest.mark.parametrize(
    ("sizes", "text"),
    [
        ((), ""),
        ((1, 2), "1, 2"),
        (
            (*range(1, 9), *range(10, 33, 2), 40, 44, 48),
            "1-8, 10-32 by 2, 40, 44, 48",
        ),
    ],
)
def test_sizes_in_short(sizes: tuple[int, ...], text: str) -> None:
    assert ranges(sizes) == text


def _clause(term: TermValue, matters: bool = True) -> Clause:
    return Clause(Joined.TEST, term.value, Need(term, True), matters=matters)


VOTE = TermValue("can_run_dp", None, True, TermSource.ASSUMED, note="no rank votes against it")
CHOICE = Clause(Joined.ANY, True, None, (_clause(VOTE), _clause(LIMIT, matters=False)))


def explanation() -> Explanation:
    guard = Guard("batch.is_extend()", Span(WORKER, 745, 745), False, "holder")
    hop = Hop(f"{WORKER}::EAGLEWorkerV2.verify", Span(WORKER, 1040, 1040), "self.fwd", (guard,))
    reason = PhaseReason(
        worker="EAGLEWorkerV2",
        phase=PhaseName.VERIFY,
        verdict=Verdict.EAGER,
        routes=(Route(SinkKind.GRAPH, (hop,)),),
        needs=(Need(BACKEND, True), Need(LIMIT, True), Need(VOTE, True)),
        replays=Clause(Joined.ALL, False, None, (_clause(LIMIT), _clause(BACKEND), CHOICE)),
        alternatives=(
            Alternative((SettingChange("cuda_graph_max_bs", 2, None, True),), Verdict.GRAPH),
        ),
    )
    return Explanation("sglang==0.5.12", "EAGLEWorkerV2.verify", (reason,), None, outcome())


def test_an_explanation_has_the_way_the_tests_and_the_change() -> None:
    text = render_explanation(explanation(), WIDE)
    assert "speculative/eagle_worker_v2.py:1040  EAGLEWorkerV2.verify  calls self.fwd" in text
    assert "line 745: not (batch.is_extend())" in text
    tests = text[text.index("The graph replays when") :]
    assert tests.index("does not hold: bs 4 > largest captured 2") < tests.index("not known")
    assert "attention_backend = 'fa3', given" in tests
    assert "\n  any of: -- holds\n" in tests
    assert "    outside the tree: can_run_dp -- assumed to hold: no rank votes against it" in tests
    assert "cuda_graph_bs <= self.max_bs -- does not matter" in tests
    assert "GRAPH with cuda_graph_max_bs not given (now 2)" in tests
    assert text.endswith("Read\n  a note\n")


def test_of_a_long_condition_the_closest_alternatives_are_shown() -> None:
    [reason] = explanation().phases
    many = Clause(Joined.ANY, False, None, (_clause(LIMIT),) * 70)
    long = replace(reason, replays=Clause(Joined.ALL, False, None, (many, CHOICE)))
    text = render_explanation(replace(explanation(), phases=(long,)), WIDE)
    tests = text[text.index("The graph replays when") :]
    assert tests.count("does not hold: bs 4 > largest captured 2") == 3
    assert "    ... 67 more: --format json" in tests


def test_a_worker_that_does_not_run_is_one_line() -> None:
    other = PhaseReason("EAGLEWorker", PhaseName.VERIFY, None, (), (), note="EAGLEWorkerV2 runs")
    text = render_explanation(replace(explanation(), phases=(other,)), WIDE)
    assert text == "EAGLEWorker.verify: EAGLEWorkerV2 runs\n"


def test_a_place_has_its_source_and_the_lines_that_may_have_been_meant() -> None:
    place = PlaceReason(
        symbol=f"{RUNNER}::CudaGraphRunner.can_run",
        span=Span(RUNNER, 5, 5),
        source="return ok",
        facts=("no graph flag is set here",),
        guards=(),
        passes=("EAGLEWorker.verify",),
        likely=(Likely("0.4.10", Span(WORKER, 322, 322), "False", "constant False"),),
    )
    found = replace(explanation(), phases=(), found=place, outcome=None)
    text = render_explanation(found, WIDE)
    assert "model_executor/cuda_graph_runner.py:5 in CudaGraphRunner.can_run" in text
    assert "0.4.10: speculative/eagle_worker_v2.py:322: constant False: False" in text
    data = json.loads(render_explanation_json(found))
    assert data["found"]["likely"][0]["release"] == "0.4.10"


def test_checks_that_need_the_same_are_one_line() -> None:
    """What every launch without a model's config leaves open is no list to read."""
    several = tuple(
        Refusal(False, "ValueError", f"no {line}", Span(RUNNER, line, line), (), ("model config",))
        for line in (5, 6, 7)
    )
    alone = Refusal(False, "ValueError", "too small", Span(RUNNER, 9, 9), (), ("GPU memory",))
    text = render_outcome(replace(outcome(), may_refuse=(*several, alone)), WIDE)
    assert "3 checks need model config, the first at model_executor/cuda_graph_runner.py:5" in text
    assert "no 6" not in text
    assert "too small (needs GPU memory)" in text


@pytest.mark.parametrize(
    ("target", "hint"),
    [
        ("path:sglang-0.5.9", "what this tree changed: specmap lint TREE --base sglang==0.5.9\n"),
        ("path:sglang", ""),  # nobody knows of which release it is
        ("sglang==0.5.9", ""),
    ],
)
def test_a_tree_on_disk_is_told_how_to_compare_it(target: str, hint: str) -> None:
    """In the map, in an outcome and in an explanation alike."""
    shown = (
        render_outcome(replace(outcome(), target=target), WIDE),
        render_explanation(replace(explanation(), target=target), WIDE),
        render(replace(small_map(), target=target), WIDE),
    )
    for text in shown:
        assert text.endswith(hint)
        assert ("lint TREE --base" in text) == bool(hint)
