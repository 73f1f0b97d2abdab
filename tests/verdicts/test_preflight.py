from __future__ import annotations

from specmap.codemap.launch import Fact, FactOrigin, LaunchFacts, OriginKind, PathTest
from specmap.codemap.outcome import BatchRange, Captured, Concern, PhaseOutcome, WorkerOutcome
from specmap.codemap.source import Span
from specmap.codemap.verdict import PhaseName, Verdict
from specmap.verdicts.preflight import concerns

SPAN = Span("sglang/srt/server_args.py", 3754, 3754)
TEST = PathTest("topk > 1", Span(SPAN.file, 3753, 3753), "true")
OFF = Fact(
    "disable_overlap_schedule", True, True, (), (),
    (FactOrigin(OriginKind.ASSIGNED, SPAN, (TEST,)),),
)  # fmt: skip


def facts(*held: Fact) -> LaunchFacts:
    return LaunchFacts({fact.name: fact for fact in held}, {}, (), (), ())


def worker(**ends: Verdict) -> WorkerOutcome:
    """Return a worker whose phases replay up to two and then end as told."""
    span = Span("sglang/srt/speculative/eagle_worker.py", 1, 2)
    phases = tuple(
        PhaseOutcome(
            PhaseName(name), "target", Verdict.GRAPH, "", span,
            (BatchRange(1, 2, Verdict.GRAPH), BatchRange(3, 48, end)), could_replay=True,
        )
        for name, end in ends.items()
    )  # fmt: skip
    return WorkerOutcome("", "EAGLEWorker", span, None, True, (), phases)


def found(
    captured: Captured,
    *workers: WorkerOutcome,
    held: LaunchFacts | None = None,
    size: int | None = None,
) -> dict[str, Concern]:
    switches = ("disable_overlap_schedule",)
    made = concerns(held or facts(), captured, workers, (), switches, size)
    return {c.kind: c for c in made}


def test_more_admitted_than_captured() -> None:
    captured = Captured((1, 2), (1, 2), (), (48, 48), None)
    made = worker(draft=Verdict.EAGER, verify=Verdict.EAGER, draft_extend=Verdict.UNKNOWN)
    concern = found(captured, made)["admission-above-capture"]
    assert concern.failing
    assert concern.message == (
        "admission 48 > largest captured bs 2 (24x); above 2 draft and verify run eager, "
        "draft_extend leaves the graph"
    )


def test_as_many_admitted_as_captured_is_no_concern() -> None:
    assert found(Captured((1, 48), (1, 48), (), (48, 48), None)) == {}


def test_where_something_is_not_known_nothing_is_said() -> None:
    assert found(Captured(None, (1,), ("GPU memory",), (48, 48), None)) == {}
    assert found(Captured((1, 2), (1, 2), (), (None, None), None)) == {}


def test_the_range_of_what_is_admitted() -> None:
    concern = found(Captured((32,), (32,), (), (2048, 4096), None))["admission-above-capture"]
    assert concern.message.startswith("admission 2048 to 4096 > largest captured bs 32 (64x)")
    assert concern.message.endswith("every decode pass runs eager")


def test_a_batch_above_what_is_admitted() -> None:
    captured = Captured((1, 2), (1, 2), (), (2, 2), None)
    concern = found(captured, size=3)["batch-above-admission"]
    assert not concern.failing
    assert concern.message.startswith("at most 2 requests are admitted: a batch of 3 does not run")
    assert found(captured, size=2) == {}
    assert found(Captured((1, 2), (1, 2), (), (2, None), None), size=3) == {}


def test_a_load_that_never_fits() -> None:
    captured = Captured((1, 2), (1, 2), (), (48, 48), 32, concurrency=20, steady=20, share=0.1)
    concern = found(captured, worker())["concurrency-above-capture"]
    assert "concurrency 20 > largest captured bs 2: 0% of steady steps (bs 20)" in concern.message
    assert "20 * 32 = 640 tokens" in found(captured, worker())["verify-width"].message


def test_a_switch_that_the_code_set_says_where_and_why() -> None:
    captured = Captured((48,), (48,), (), (48, 48), None)
    concern = found(captured, held=facts(OFF))["turned-off-in-silence"]
    assert concern.message == (
        "disable_overlap_schedule becomes True, set at sglang/srt/server_args.py:3754, because "
        "topk > 1"
    )
    assert concern.span == SPAN
    assert not concern.failing
