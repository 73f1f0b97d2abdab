"""What a launch costs in silence: limits that do not meet, options that turn graphs off."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from specmap.codemap.launch import Fact, FactOrigin, LaunchFacts, OriginKind
from specmap.codemap.outcome import CYCLE, Captured, Concern, WorkerOutcome
from specmap.codemap.source import Span
from specmap.codemap.verdict import Verdict
from specmap.verdicts.workers import PassedOver


def concerns(
    facts: LaunchFacts,
    captured: Captured,
    workers: Sequence[WorkerOutcome],
    over: Sequence[PassedOver],
    switches: Sequence[str],
    size: int | None = None,
) -> tuple[Concern, ...]:
    """Return the findings before a start, most important first; ``size`` is the batch asked for."""
    found = [
        *_not_admitted(captured, size),
        *_admission(captured, workers),
        *_concurrency(captured),
        *_fallbacks(over),
        *_turned_off(facts, switches, {p.setting.name for p in over}),
        *_tokens(captured),
    ]
    return tuple(dict.fromkeys(found))


def _above(workers: Sequence[WorkerOutcome]) -> str:
    """Say which phases leave their graphs above the largest captured size, and for what."""
    ends = [
        (phase.name.value, phase.ranges[-1].verdict)
        for worker in workers[:1]
        for phase in worker.phases
        if phase.name in CYCLE and len(phase.ranges) > 1
    ]
    if not ends:
        return "every decode pass runs eager"
    eager = [name for name, verdict in ends if verdict is Verdict.EAGER]
    others = [name for name, verdict in ends if verdict is not Verdict.EAGER]
    parts = [f"{_listed(eager)} {_verb(eager, 'run')} eager"] if eager else []
    parts += [f"{_listed(others)} {_verb(others, 'leave')} the graph"] if others else []
    return ", ".join(parts)


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _verb(names: Sequence[str], verb: str) -> str:
    return f"{verb}s" if len(names) == 1 else verb


def _admission(captured: Captured, workers: Sequence[WorkerOutcome]) -> Iterator[Concern]:
    largest = max(captured.sizes) if captured.sizes else None
    least, most = captured.admitted
    if largest is None or least is None or least <= largest:
        return
    admitted = str(least) if least == most else f"{least} to {most or 'more'}"
    times = f"{least / largest:.1f}".removesuffix(".0") + "x"
    yield Concern(
        "admission-above-capture",
        f"admission {admitted} > largest captured bs {largest} ({times}); above {largest} "
        f"{_above(workers)}",
        None,
        True,
    )


def _not_admitted(captured: Captured, size: int | None) -> Iterator[Concern]:
    most = captured.admitted[1]
    if size is None or most is None or size <= most:
        return
    few = f"{most} request{' is' if most == 1 else 's are'}"
    yield Concern(
        "batch-above-admission",
        f"at most {few} admitted: a batch of {size} does not run",
        None,
        False,
    )


def _concurrency(captured: Captured) -> Iterator[Concern]:
    if captured.concurrency is None or captured.sizes is None or not captured.sizes:
        return
    largest, steady = max(captured.sizes), captured.steady or captured.concurrency
    if steady > largest:
        yield Concern(
            "concurrency-above-capture",
            f"concurrency {captured.concurrency} > largest captured bs {largest}: 0% of steady "
            f"steps (bs {steady}) can replay, with or without speculation",
            None,
            True,
        )


def _tokens(captured: Captured) -> Iterator[Concern]:
    width = captured.tokens_per_request
    largest = max(captured.sizes) if captured.sizes else None
    if not width or width < 2:
        return
    at = captured.steady or largest
    if at is None:
        return
    yield Concern(
        "verify-width",
        f"captured sizes count requests; a verify step at bs {at} computes {at} * {width} = "
        f"{at * width} tokens",
        None,
        False,
    )


def _fallbacks(over: Sequence[PassedOver]) -> Iterator[Concern]:
    for passed in over:
        fact = passed.setting
        if fact.value is not True:
            continue
        yield Concern(
            "worker-passed-over",
            f"{passed.worker.name} is not taken: {fact.name} is {fact.value}{_why(fact)}",
            _place(fact),
            False,
        )


def _turned_off(facts: LaunchFacts, switches: Sequence[str], told: set[str]) -> Iterator[Concern]:
    for name in switches:
        fact = facts.facts.get(name)
        if fact is None or name in told or not fact.known or fact.value is not True:
            continue
        assigned = [o for o in fact.origins if o.kind is OriginKind.ASSIGNED]
        if assigned:
            yield Concern(
                "turned-off-in-silence", f"{name} becomes True{_why(fact)}", _place(fact), False
            )


def _assigned(fact: Fact) -> FactOrigin | None:
    return next((o for o in fact.origins if o.kind is OriginKind.ASSIGNED), None)


def _place(fact: Fact) -> Span | None:
    origin = _assigned(fact)
    return origin.span if origin is not None else None


def _why(fact: Fact) -> str:
    """Say where a setting got its value, and the test that led there."""
    origin = _assigned(fact)
    if origin is None:
        return ", as given" if any(o.kind is OriginKind.GIVEN for o in fact.origins) else ""
    tests = [t for t in origin.tests if t.outcome != "unknown"]
    last = f", because {_test(tests[-1].text, tests[-1].outcome)}" if tests else ""
    return f", set at {origin.span}{last}" if origin.span is not None else last


def _test(text: str, outcome: str) -> str:
    return text if outcome == "true" else f"not ({text})"
