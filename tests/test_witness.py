"""What a server's log says of its decode batches, beside the verdict of the source."""

from __future__ import annotations

from dataclasses import replace

from specmap.codemap.condition import TRUE
from specmap.codemap.graph import Arm, Flag, FlagStatus
from specmap.codemap.outcome import (
    BatchRange,
    Captured,
    LoggedBatch,
    Outcome,
    PhaseOutcome,
    WorkerOutcome,
)
from specmap.codemap.source import Span
from specmap.codemap.verdict import PhaseName, SinkKind, Verdict
from specmap.verdicts.truths import Batch
from specmap.witness import largest_logged, with_log
from tests.small_map import small_map

SPAN = Span("sglang/srt/speculative/eagle_worker.py", 1, 1)
MAP = replace(small_map(), flags=())


def outcome(*ranges: tuple[int, int | None, str]) -> Outcome:
    """Return an outcome in which verify ends so for these batch sizes."""
    found = tuple(BatchRange(first, last, Verdict(word)) for first, last, word in ranges)
    verify = PhaseOutcome(
        PhaseName.VERIFY, "target", found[0].verdict, "holder", SPAN, found, could_replay=True
    )
    worker = WorkerOutcome(MAP.workers[0].id, "EAGLEWorker", SPAN, None, True, (), (verify,))
    captured = Captured(None, (), (), (None, None), None)
    return Outcome(
        "tree", None, "cuda", (), None, None, (), (worker,), captured, (), (), (), (), (), ()
    )


GRAPH_TO_8 = outcome((1, 8, "GRAPH"), (9, None, "EAGER"))


def test_a_log_without_graph_against_a_source_with_one_fails() -> None:
    found = with_log(GRAPH_TO_8, MAP, (LoggedBatch(4, 0, 6),), None)
    assert found.findings
    (concern,) = found.concerns
    assert concern.message == (
        "the log says cuda graph: False in 6 decode batches with 4 running; the source says verify "
        "is GRAPH: another version, a fork, or another batch?"
    )


def test_a_log_that_agrees_says_nothing_more() -> None:
    found = with_log(GRAPH_TO_8, MAP, (LoggedBatch(4, 6, 0), LoggedBatch(9, 0, 2)), None)
    assert not found.concerns
    assert found.logged == (LoggedBatch(4, 6, 0), LoggedBatch(9, 0, 2))


def test_a_graph_in_the_log_where_the_source_has_none() -> None:
    (concern,) = with_log(GRAPH_TO_8, MAP, (LoggedBatch(12, 3, 0),), None).concerns
    assert "cuda graph: True in 3 decode batches with 12 running" in concern.message
    assert "the source says verify is EAGER" in concern.message


def test_only_the_batch_that_was_asked_about_counts() -> None:
    logged = (LoggedBatch(2, 5, 0), LoggedBatch(4, 0, 6))
    assert not with_log(GRAPH_TO_8, MAP, logged, 2).concerns
    assert with_log(GRAPH_TO_8, MAP, logged, 4).findings


def test_batches_of_one_size_that_differ_are_told_and_do_not_fail() -> None:
    found = with_log(GRAPH_TO_8, MAP, (LoggedBatch(4, 5, 1),), None)
    assert "in 5 others of that size it agrees" in found.concerns[0].message
    assert not found.findings


def test_a_rank_of_several_does_not_know_the_batch() -> None:
    found = with_log(GRAPH_TO_8, MAP, (LoggedBatch(4, 0, 6, ranks=True),), None)
    assert "each data-parallel rank logs its own requests" in found.concerns[0].message
    assert not found.findings


def test_what_the_source_cannot_tell_contradicts_nothing() -> None:
    unknown = outcome((1, None, "UNKNOWN"))
    assert not with_log(unknown, MAP, (LoggedBatch(4, 0, 6),), None).concerns
    assert not with_log(GRAPH_TO_8, MAP, (LoggedBatch(4, 0, 0),), None).concerns


def test_a_worker_that_reports_a_constant_is_named_instead_of_claiming() -> None:
    # Verify can replay, and the flag that the worker reports of it is always False.
    place = Span("sglang/srt/speculative/eagle_worker.py", 7, 7)
    flag = Flag(
        "can_run_cuda_graph", place, MAP.workers[0].phases[1].holder, FlagStatus.CONSTANT, "verify",
        decides=False, value=False, text="False", workers=(MAP.workers[0].id,),
    )  # fmt: skip
    verify = replace(MAP.workers[0].phases[1], arms=(Arm("sink", SinkKind.GRAPH, TRUE, ()),))
    worker = replace(MAP.workers[0], phases=(verify,))
    codemap = replace(MAP, flags=(flag,), workers=(worker,))
    (concern,) = with_log(GRAPH_TO_8, codemap, (LoggedBatch(4, 0, 6),), None).concerns
    assert "so the log may be the one that is wrong" in concern.message
    assert "eagle_worker.py:7" in concern.message


def test_the_largest_batch_of_a_log_is_asked_about() -> None:
    logged = (LoggedBatch(2, 1, 0), LoggedBatch(4, 0, 6))
    batch, notes = largest_logged(Batch(), None, logged)
    assert batch.size == 4
    assert notes == ("batch of 4: the most running requests of the log's decode batches",)
    assert largest_logged(Batch(size=2), None, logged) == (Batch(size=2), ())
    assert largest_logged(Batch(), 16, logged)[0].size is None
    assert largest_logged(Batch(), None, ()) == (Batch(), ())
    _, notes = largest_logged(Batch(size=3), None, logged)
    assert notes == ("no decode batch of the log has 3 running requests, it has 2, 4",)
