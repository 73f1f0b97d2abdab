"""One launch of one tree, judged."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from specmap.codemap.graph import CodeMap
from specmap.codemap.launch import Fact, LaunchFacts, Refusal
from specmap.codemap.outcome import (
    CYCLE,
    Assumption,
    Captured,
    Expectation,
    Outcome,
    PhaseOutcome,
    WorkerOutcome,
)
from specmap.codemap.verdict import PhaseName, Verdict
from specmap.scan.launch.evaluator import Evaluator
from specmap.verdicts.phases import Judge
from specmap.verdicts.preflight import concerns
from specmap.verdicts.sizes import Sizes
from specmap.verdicts.truths import Batch, Truths
from specmap.verdicts.words import VerdictWords
from specmap.verdicts.workers import passed_over, select


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked about a launch besides its settings.

    ``least`` are batch sizes that are captured whatever is not known about the machine. A
    ``concurrency`` asks about the batch of a steady load, where ``batch`` names no size.
    """

    command: tuple[str, ...] = ()
    batch: Batch = field(default_factory=Batch)
    concurrency: int | None = None
    expected: Mapping[PhaseName, Verdict] | None = None
    least: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()


def judge(
    codemap: CodeMap,
    evaluator: Evaluator,
    words: VerdictWords,
    question: Question,
    sure: Callable[[], Evaluator] | None = None,
) -> Outcome:
    """Return what a launch makes of a tree.

    ``sure`` gives an evaluator that knows no more than the caller said, where ``evaluator``
    assumes more: a worker that starts under it is no certain refusal.
    """
    facts = evaluator.facts()
    captured = _captured(evaluator, facts, words, question)
    batch = at_load(question.batch, question.concurrency, evaluator)
    court = _court(evaluator, words, batch, captured)
    truths = court.truths
    refused = facts.refused
    workers = () if refused is not None else select(codemap, court)
    refused = refused or stopped(evaluator, workers, sure)
    if refused is not None:
        workers = ()
    workers = tuple(replace(w, phases=_with_backends(w, evaluator, words)) for w in workers)
    if workers and not any(_replays(phase) for w in workers for phase in w.phases):
        captured = replace(captured, sizes=(), least=(), share=None)
    over = () if refused is not None else passed_over(codemap, court, words.switches)
    found = () if refused else concerns(facts, captured, workers, over, words.switches, batch.size)
    return Outcome(
        target=codemap.target,
        release=codemap.release,
        platform=codemap.platform,
        command=question.command,
        batch_size=batch.size,
        refusal=refused,
        may_refuse=may_refuse(facts),
        workers=workers,
        captured=captured,
        settings=_settings(facts, workers),
        concerns=found,
        expectations=_expectations(question.expected or {}, workers, refused is not None),
        assumptions=_assumptions(evaluator, truths, words),
        missing=_missing(workers, captured, words),
        notes=question.notes,
        partial=codemap.unread,
    )


def may_refuse(facts: LaunchFacts) -> tuple[Refusal, ...]:
    """Return the raises that may stop the start, as far as is known."""
    return tuple(refusal for refusal in facts.refusals if not refusal.certain)


def stopped(
    evaluator: Evaluator,
    workers: Sequence[WorkerOutcome],
    sure: Callable[[], Evaluator] | None = None,
) -> Refusal | None:
    """Return the raise that stops the start of the one worker that runs, or None.

    A phase that replays has captured, and so has asked for the list of sizes.
    """
    if len(workers) != 1 or not workers[0].certain:
        return None
    worker = workers[0]
    found = evaluator.stopped(worker.span.file, worker.name)
    if found is not None and sure is not None:
        return sure().stopped(worker.span.file, worker.name) or replace(found, certain=False)
    if found is None and any(r.verdict is Verdict.GRAPH for p in worker.phases for r in p.ranges):
        found = evaluator.capture_stopped()
    return found


def _replays(phase: PhaseOutcome) -> bool:
    """Whether a phase replays a graph of the captured sizes, or may."""
    return any(r.verdict in (Verdict.GRAPH, Verdict.UNKNOWN) for r in phase.ranges) and (
        phase.name in CYCLE
    )


def at_load(batch: Batch, concurrency: int | None, evaluator: Evaluator) -> Batch:
    """Return the batch of a steady load, where the caller names no batch size."""
    if batch.size is not None or concurrency is None:
        return batch
    return replace(batch, size=_steady(concurrency, evaluator.pool_range()))


def court_of(
    evaluator: Evaluator, words: VerdictWords, batch: Batch, least: tuple[int, ...] = ()
) -> Judge:
    """Return the judge of a launch; ``least`` are sizes that are captured in any case."""
    captured = _captured(evaluator, evaluator.facts(), words, Question(least=least))
    return _court(evaluator, words, batch, captured)


def _court(evaluator: Evaluator, words: VerdictWords, batch: Batch, captured: Captured) -> Judge:
    sizes = Sizes(captured.sizes, captured.least, captured.reasons)
    return Judge(Truths(evaluator, words, batch), sizes, captured.admitted[1])


def _captured(
    evaluator: Evaluator, facts: LaunchFacts, words: VerdictWords, question: Question
) -> Captured:
    sizes = evaluator.capture_sizes()
    known = _listed(sizes)
    admitted = evaluator.pool_range()
    width = next((facts.facts[n].value for n in words.width if n in facts.facts), None)
    return Captured(
        sizes=known,
        least=known or question.least,
        reasons=() if known is not None else sizes.reasons,
        admitted=admitted,
        tokens_per_request=width if isinstance(width, int) else None,
        concurrency=question.concurrency,
        steady=_steady(question.concurrency, admitted),
        share=_share(question.concurrency, known),
    )


def _listed(fact: Fact) -> tuple[int, ...] | None:
    if not fact.known or not isinstance(fact.value, tuple):
        return None
    return tuple(size for size in fact.value if isinstance(size, int))


def _steady(concurrency: int | None, admitted: tuple[int | None, int | None]) -> int | None:
    """Return the batch size of a steady load: all of it, or what is admitted."""
    if concurrency is None:
        return None
    return min(concurrency, admitted[0]) if admitted[0] is not None else concurrency


def _share(concurrency: int | None, sizes: tuple[int, ...] | None) -> float | None:
    if concurrency is None or sizes is None:
        return None
    return min(max(sizes, default=0), concurrency) / concurrency


def _expectations(
    expected: Mapping[PhaseName, Verdict], workers: Sequence[WorkerOutcome], refused: bool
) -> tuple[Expectation, ...]:
    found = []
    for name, wanted in expected.items():
        seen = {p.verdict for w in workers for p in w.phases if p.name == name}
        if refused or (workers and not seen):
            seen = {Verdict.NOT_RUN}
        verdict = next(iter(seen)) if len(seen) == 1 else Verdict.UNKNOWN
        found.append(Expectation(name, wanted, verdict, verdict is wanted))
    return tuple(found)


def _assumptions(
    evaluator: Evaluator, truths: Truths, words: VerdictWords
) -> tuple[Assumption, ...]:
    batch = [Assumption(key, words.reasons[key]) for key in words.reasons if key in truths.used]
    launch = [Assumption("", text) for text in evaluator.facts().assumptions]
    return (*batch, *launch)


def _missing(
    workers: Sequence[WorkerOutcome], captured: Captured, words: VerdictWords
) -> tuple[str, ...]:
    """Return what would settle what is not known; what an option can say comes first."""
    reasons = {r for w in workers for term in w.open_terms for r in term.reasons}
    reasons |= {r for w in workers for p in w.phases for t in p.open_terms for r in t.reasons}
    reasons |= set(captured.reasons)
    told = [
        f"{reason} ({words.options[reason]})" for reason in sorted(reasons & set(words.options))
    ]
    rest = sorted(reasons - set(words.options))
    return (*told, *(f"{r} (--env)" if r.startswith("env ") else r for r in rest))


def _settings(facts: LaunchFacts, workers: Sequence[WorkerOutcome]) -> tuple[Fact, ...]:
    """Return the settings that the deciding tests read."""
    found = {
        fact.name: fact
        for worker in workers
        for phase in worker.phases
        for term in (*phase.deciding, *phase.open_terms)
        for fact in term.settings
    }
    return tuple(found[name] for name in sorted(found))


def _with_backends(
    worker: WorkerOutcome, evaluator: Evaluator, words: VerdictWords
) -> tuple[PhaseOutcome, ...]:
    """Name the attention backend of each phase that runs."""
    found = []
    for phase in worker.phases:
        text = words.backends.get(phase.name)
        runs = phase.verdict is not Verdict.NOT_RUN
        name = evaluator.kind(text, phase.span.file) if text and runs else ""
        found.append(replace(phase, backend=name))
    return tuple(found)
