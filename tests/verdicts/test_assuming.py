"""A launch whose model is not given: what rests on a plain model is marked."""

from __future__ import annotations

from dataclasses import replace

from specmap.codemap.launch import Refusal
from specmap.codemap.outcome import BatchRange, Captured, Outcome, PhaseOutcome, WorkerOutcome
from specmap.codemap.source import Span
from specmap.codemap.verdict import PhaseName, Verdict
from specmap.scan.launch.tables import Inputs
from specmap.verdicts.assuming import assumed_models, marked, with_plain_models
from specmap.verdicts.words import load_words

SPAN = Span("sglang/srt/worker.py", 1, 1)
CONFIG: dict[str, object] = {"architectures": ["Some"]}


def _outcome(*ranges: BatchRange, sizes: tuple[int, ...] | None, certain: bool = True) -> Outcome:
    phase = PhaseOutcome(
        PhaseName.VERIFY, "target", ranges[0].verdict, "Worker.verify", SPAN, ranges
    )
    worker = WorkerOutcome("Worker", "Worker", SPAN, None, certain, (), (phase,))
    captured = Captured(sizes, sizes or (), (), (None, None), None)
    return Outcome(
        target="tree", release=None, platform="cuda", command=(), batch_size=None, refusal=None,
        may_refuse=(), workers=(worker,), captured=captured, settings=(), concerns=(),
        expectations=(), assumptions=(), missing=(), notes=(),
    )  # fmt: skip


SURE = _outcome(BatchRange(1, 1, Verdict.GRAPH), BatchRange(2, None, Verdict.UNKNOWN), sizes=None)
PLAIN = _outcome(BatchRange(1, 2, Verdict.GRAPH), BatchRange(3, 48, Verdict.EAGER), sizes=(1, 2))


def test_only_what_is_not_given_is_assumed() -> None:
    words = load_words()
    given = Inputs(model_config=CONFIG)
    taken = with_plain_models(given, words, draft=True)
    assert taken.model_config is CONFIG
    assert taken.draft_config == words.plain_model
    [draft] = assumed_models(given, taken, words)
    assert draft.option == "--draft-config"
    assert with_plain_models(given, words, draft=False) == given


def test_the_draft_of_some_algorithms_is_a_head() -> None:
    words = load_words()
    given = Inputs(values={"speculative_algorithm": "EAGLE3"}, model_config=CONFIG)
    draft = with_plain_models(given, words, draft=True).draft_config
    assert draft == {**words.plain_model, "architectures": ["LlamaForCausalLMEagle3"]}


def test_a_verdict_that_was_certain_is_not_marked() -> None:
    [phase] = marked(SURE, PLAIN, ()).workers[0].phases
    assert (phase.verdict, phase.assumed) == (Verdict.GRAPH, False)
    # bs 2 was not certain, so the range that holds it is marked.
    assert [part.assumed for part in phase.ranges] == [True, True]
    assert marked(SURE, PLAIN, ()).captured.assumed


def test_a_worker_that_was_not_certain_is_marked_with_its_phases() -> None:
    unsure = replace(SURE, workers=(replace(SURE.workers[0], certain=False),))
    [worker] = marked(unsure, PLAIN, ()).workers
    assert worker.assumed
    assert worker.phases[0].assumed


def test_assumptions_that_would_stop_the_start_are_dropped() -> None:
    refusal = Refusal(True, "ValueError", "only with MLA", SPAN, (), ())
    found = marked(SURE, replace(PLAIN, refusal=refusal, workers=()), ())
    assert found.refusal is None
    assert found.workers == SURE.workers
    assert "worker.py:1" in found.notes[0]
