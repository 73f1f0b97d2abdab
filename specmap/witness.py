"""A server's log beside the source: what it says of its decode batches, and verify's verdict."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from specmap.codemap.graph import CodeMap
from specmap.codemap.outcome import LOG_AGAINST_SOURCE, Concern, LoggedBatch, Outcome, PhaseOutcome
from specmap.codemap.source import Span
from specmap.codemap.verdict import PhaseName, Verdict
from specmap.verdicts.truths import Batch

# What the two can contradict each other about; of other verdicts the flag says nothing.
_SAYS = {Verdict.GRAPH: True, Verdict.EAGER: False}


def largest_logged(
    batch: Batch, concurrency: int | None, logged: Sequence[LoggedBatch]
) -> tuple[Batch, tuple[str, ...]]:
    """Return the batch to ask about, and what the log has to do with it.

    Where the caller names no size, it is the largest that the log tells of.
    """
    if not logged:
        return batch, ()
    sizes = [item.size for item in logged]
    if batch.size is None and concurrency is None:
        note = f"batch of {sizes[-1]}: the most running requests of the log's decode batches"
        return replace(batch, size=sizes[-1]), (note,)
    if batch.size is not None and batch.size not in sizes:
        note = (
            f"no decode batch of the log has {batch.size} running requests, it has {_sizes(sizes)}"
        )
        return batch, (note,)
    return batch, ()


def with_log(
    outcome: Outcome, codemap: CodeMap, logged: Sequence[LoggedBatch], size: int | None
) -> Outcome:
    """Return an outcome beside the log of the server; ``size`` is the batch that the caller named.

    Where the log and verify's verdict contradict each other, that is a concern that fails.
    """
    worker = outcome.worker
    outcome = replace(outcome, logged=tuple(logged))
    verify = [p for p in worker.phases if p.name is PhaseName.VERIFY] if worker is not None else []
    if not verify or worker is None:
        return outcome
    asked = [item for item in logged if size in (None, item.size)]
    found = tuple(_contradictions(verify[0], asked, _other_flag(codemap, worker.id)))
    return replace(outcome, concerns=(*found, *outcome.concerns))


def _contradictions(
    verify: PhaseOutcome, logged: Sequence[LoggedBatch], other: Span | None
) -> Iterator[Concern]:
    for verdict, graph in _SAYS.items():
        against = [
            item
            for item in logged
            if _at(verify, item.size) is verdict and (item.eager if graph else item.graph)
        ]
        if not against:
            continue
        whole = [item for item in against if not (item.graph if graph else item.eager)]
        alone = whole or against
        count = sum(item.eager if graph else item.graph for item in alone)
        batches = f"{count} decode batch{'es' * (count > 1)}"
        text = (
            f"the log says cuda graph: {not graph} in {batches} with "
            f"{_sizes(item.size for item in alone)} running; the source says verify is {verdict}: "
        )
        ranks = any(item.ranks for item in alone)
        if not whole:
            others = sum(item.graph if graph else item.eager for item in alone)
            text += f"in {others} others of that size it agrees, so something else decides too"
        elif ranks:
            text += "each data-parallel rank logs its own requests, and those of all decide"
        else:
            text += "another version, a fork, or another batch?"
        if other is not None:
            text += (
                "; but this worker reports something else than what its verify pass says of itself "
                f"({other}: lint's SPM102 and SPM103), so the log may be the one that is wrong"
            )
        yield Concern(LOG_AGAINST_SOURCE, text, other, bool(whole) and not ranks)


def _at(phase: PhaseOutcome, size: int) -> Verdict | None:
    """Return the verdict at a batch size."""
    within = (r for r in phase.ranges if r.first <= size and (r.last is None or size <= r.last))
    return next((found.verdict for found in within), None)


def _other_flag(codemap: CodeMap, worker: str) -> Span | None:
    """Return where a worker reports something else than what its verify pass says, or None."""
    from specmap.lint.detectors.coverage import constant_report, dropped_flag

    for rule in (dropped_flag, constant_report):
        for match in rule(codemap, {}):
            if PhaseName.VERIFY in match.phases and worker in match.workers:
                return match.span
    return None


def _sizes(sizes: Iterable[int]) -> str:
    from specmap.report.outcome_text import ranges

    return ranges(tuple(sizes))
