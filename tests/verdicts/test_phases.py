"""Ranges of batch sizes agree with the verdict at each size, whatever size is asked for."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from specmap.codemap.condition import TRUE, AtomKind, atoms_of, leaf, negate
from specmap.codemap.graph import Arm, Phase
from specmap.codemap.outcome import PhaseOutcome
from specmap.codemap.source import Span
from specmap.codemap.verdict import PhaseName, SinkKind, Verdict
from specmap.scan.launch.evaluator import Evaluator
from specmap.scan.launch.library import Kept
from specmap.verdicts.phases import Judge
from specmap.verdicts.sizes import Sizes
from specmap.verdicts.truths import Batch, Truths
from specmap.verdicts.words import load_words

SPAN = Span("sglang/srt/speculative/eagle_worker.py", 1, 2)
LISTED = "get_batch_sizes_to_capture(model_runner)"
AT_MOST, ONE_OF = "cuda_graph_bs <= self.max_bs", "cuda_graph_bs in self.graphs"


def judged(text: str, sizes: Sizes, top: int | None, size: int | None) -> PhaseOutcome:
    """Return how a phase ends that replays exactly if one test of the batch size holds."""
    test = leaf(text, AtomKind.BATCH, SPAN)
    arms = (
        Arm("replay", SinkKind.GRAPH, test, ()),
        Arm("forward", SinkKind.EAGER, negate(test), ()),
    )
    phase = Phase(PhaseName.VERIFY, "target", (), SPAN, "", arms, test, None)
    return judge(sizes, top, size).phase(phase)


def judge(
    sizes: Sizes, top: int | None, size: int | None, uncounted: tuple[str, int, int] | None = None
) -> Judge:
    # A test of the batch size asks no setting.
    nothing = cast(Evaluator, SimpleNamespace(uncounted=uncounted, stored=lambda *_: []))
    return Judge(Truths(nothing, load_words(), Batch(size, {})), sizes, top)


def at(outcome: PhaseOutcome, size: int) -> list[Verdict]:
    return [
        part.verdict
        for part in outcome.ranges
        if part.first <= size and (part.last is None or size <= part.last)
    ]


@pytest.mark.parametrize("text", [AT_MOST, ONE_OF, "forward_batch.batch_size <= self.max_bs"])
@pytest.mark.parametrize("captured", [(), (1, 2), (1, 2, 4), (8,), (1, 2, 4, 8, 16)])
@pytest.mark.parametrize("top", [*range(1, 9), None])
def test_ranges_agree_with_each_single_size(
    text: str, captured: tuple[int, ...], top: int | None
) -> None:
    for asked in range(1, 13):
        outcome = judged(text, Sizes(captured), top, asked)
        for size in range(1, 13):
            held = size in captured if text == ONE_OF else size <= max(captured, default=0)
            wanted = Verdict.GRAPH if held else Verdict.EAGER
            if size == asked:
                assert outcome.verdict is wanted
            runs = top is None or size <= max(top, 0 if asked <= top else size)
            assert at(outcome, size) == ([wanted] if runs else []), (asked, size)


@pytest.mark.parametrize("asked", [3, 4, 12])
def test_the_edge_is_that_of_the_captured_sizes(asked: int) -> None:
    outcome = judged(AT_MOST, Sizes((1, 2)), 2, asked)
    shown = [(part.first, part.last, part.verdict) for part in outcome.ranges]
    assert shown == [(1, 2, Verdict.GRAPH), (3, None, Verdict.EAGER)]


def test_what_can_run_ends_the_ranges() -> None:
    parts = judged(AT_MOST, Sizes((1, 2)), 8, None).ranges
    assert [(part.first, part.last) for part in parts] == [(1, 2), (3, 8)]
    assert [(p.first, p.last) for p in judged(AT_MOST, Sizes((1, 2)), 2, 2).ranges] == [(1, 2)]


def test_a_phase_without_a_graph_says_where_it_ends() -> None:
    runner = "sglang/srt/model_executor/model_runner.py::ModelRunner.forward_extend"
    arm = Arm("forward", SinkKind.EAGER, TRUE, ((runner, 3233),))
    phase = Phase(
        PhaseName.DRAFT_PREFILL, "draft", (), SPAN, "", (arm,), negate(TRUE), Verdict.EAGER
    )
    outcome = judge(Sizes((1, 2)), 8, 4).phase(phase)
    assert outcome.verdict is Verdict.EAGER
    assert outcome.note == (
        "no way to a graph: ends eager in ModelRunner.forward_extend "
        "(sglang/srt/model_executor/model_runner.py:3233)"
    )
    assert judged(AT_MOST, Sizes((1, 2)), 8, 4).note == ""


@pytest.mark.parametrize(
    ("tests", "verdict"),
    [
        ((), Verdict.UNKNOWN),
        (("self.steps == 1", "self.steps > 0"), Verdict.UNKNOWN),
        (("self.steps == 0",), Verdict.EAGER),
    ],
)
def test_a_number_that_no_code_of_the_worker_knows(
    tests: tuple[str, ...], verdict: Verdict
) -> None:
    arm = Arm("forward", SinkKind.EAGER, TRUE, ())
    phase = Phase(PhaseName.DRAFT, "draft", (), SPAN, "", (arm,), negate(TRUE), None)
    outcome = judge(Sizes((1, 2)), 8, 4, ("steps", 0, 1)).phase(phase, tests)
    assert outcome.verdict is verdict
    needs = [term.reasons for term in outcome.open_terms]
    assert needs == ([] if verdict is Verdict.EAGER else [("steps of 1 or more",)])


@pytest.mark.parametrize(
    ("text", "held"),
    [
        ("forward_batch.batch_size <= 2", range(1, 3)),
        ("cuda_graph_bs % 2 == 0", range(2, 99, 2)),
        ("forward_batch.batch_size > 3", range(4, 99)),
    ],
)
@pytest.mark.parametrize("top", [5, 8, None])
def test_a_limit_of_a_forks_own_is_asked_at_each_size(
    text: str, held: range, top: int | None
) -> None:
    for asked in range(1, 13):
        outcome = judged(text, Sizes((1, 2, 4)), top, asked)
        wanted = Verdict.GRAPH if asked in held else Verdict.EAGER
        assert outcome.verdict is wanted, asked
        for size in range(1, 6):
            assert at(outcome, size) == [Verdict.GRAPH if size in held else Verdict.EAGER]
    last = judged(text, Sizes((1, 2, 4)), top, None).ranges[-1]
    assert (last.verdict is Verdict.UNKNOWN) is ("%" in text and top is None)


def test_a_prefill_has_a_batch_size_of_its_own() -> None:
    test = leaf("forward_batch.batch_size <= 2", AtomKind.BATCH, SPAN)
    asked = judge(Sizes((1, 2)), 8, 2)
    asked.truths.phase = PhaseName.TARGET_PREFILL
    with pytest.raises(AttributeError):  # it is asked of the launch, which is not there
        asked.truths.value(next(iter(atoms_of(test))))


@pytest.mark.parametrize(
    ("text", "given", "known"),
    [
        (AT_MOST, {}, True),
        (AT_MOST, {"max_bs": "max(self.capture_bs)"}, True),
        (AT_MOST, {"max_bs": "min(max(self.capture_bs), 2)"}, False),
        (AT_MOST, {"max_bs": "self.max_bs //= 2"}, False),
        (ONE_OF, {"max_bs": "min(max(self.capture_bs), 2)"}, True),
        (AT_MOST, {"capture_bs": f"self.capture_bs, self.compile_bs = {LISTED}"}, True),
        (ONE_OF, {"capture_bs": LISTED}, True),
        (AT_MOST, {"capture_bs": f"self.compile_bs, self.capture_bs = {LISTED}"}, False),
        (AT_MOST, {"capture_bs": f"{LISTED}[:2]"}, False),
        (AT_MOST, {"capture_bs": "[1, 2]"}, False),
        (ONE_OF, {"capture_bs": "self.capture_bs.pop()"}, None),
    ],
)
def test_a_runner_with_sizes_that_are_not_those_at_capture(
    text: str, given: dict[str, str], known: bool | None
) -> None:
    kept = {name: [Kept(value, 3)] for name, value in given.items()}
    nothing = SimpleNamespace(uncounted=None, stored=lambda name, *_: kept.get(name, []))
    truths = Truths(cast(Evaluator, nothing), load_words(), Batch(4, {}))
    test = next(iter(atoms_of(leaf(text, AtomKind.BATCH, SPAN))))
    if known:
        assert truths.size_test(test) == ("one of" if text == ONE_OF else "at most")
    elif known is None:
        assert truths.size_test(test) is None
    else:
        with pytest.raises(AttributeError):  # it is asked of the launch, which is not there
            truths.size_test(test)
