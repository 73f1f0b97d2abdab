"""The launches of a grid, judged: what several cells have in common is worked out once."""

from __future__ import annotations

import gc
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property

from specmap.codemap.graph import CodeMap
from specmap.codemap.launch import Answer, Fact, LaunchFacts, Plain, Refusal
from specmap.codemap.outcome import CYCLE, Assumption, Outcome, PhaseOutcome, TermSource, TermValue
from specmap.codemap.sweep import Cell, CellPhase
from specmap.codemap.verdict import PhaseName, Verdict
from specmap.launched import Prepared, least_captured
from specmap.scan.launch.evaluator import Evaluator
from specmap.scan.launch.library import Library
from specmap.scan.launch.tables import Inputs
from specmap.scan.vocabulary import Vocabulary
from specmap.sweep.grid import Setting, changed
from specmap.verdicts.assuming import assumed_models, doubted, marked, with_plain_models
from specmap.verdicts.outcome import judge, may_refuse

# Launches between two collections: an evaluation leaves cycles of some megabytes.
_COLLECT_EVERY = 25


class Remembered(Evaluator):
    """An evaluator that answers a question once: a finished evaluation does not change."""

    def __init__(self, library: Library, vocabulary: Vocabulary, inputs: Inputs) -> None:
        self._answers: dict[tuple[str, str, int], Answer] = {}
        self._stopped: dict[tuple[str, str], Refusal | None] = {}
        super().__init__(library.root, vocabulary, inputs, library)

    def truth(self, text: str, file: str = "", line: int = 0) -> Answer:
        """Return whether a test of the map holds."""
        key = (text, file, line)
        if key not in self._answers:
            self._answers[key] = super().truth(text, file, line)
        return self._answers[key]

    def stopped(self, file: str, name: str) -> Refusal | None:
        """Return the raise that certainly stops the start of a worker class, or None."""
        if (file, name) not in self._stopped:
            self._stopped[file, name] = super().stopped(file, name)
        return self._stopped[file, name]

    def capture_sizes(self) -> Fact:
        """Return the batch sizes that a decode runner captures: a tuple, ascending."""
        return self._sizes

    def pool_range(self) -> tuple[int | None, int | None]:
        """Return the least and the most requests that are admitted, None where not known."""
        return self._pool

    @cached_property
    def _sizes(self) -> Fact:
        return super().capture_sizes()

    @cached_property
    def _pool(self) -> tuple[int | None, int | None]:
        return super().pool_range()


@dataclass(frozen=True, slots=True)
class Judged:
    """The cells of one launch, one for each batch size, and what they take for granted."""

    cells: tuple[Cell, ...]
    assumptions: tuple[Assumption, ...]


class Bench:
    """Judges one launch after the other on the same map and syntax trees.

    ``inputs`` are what all launches have in common. ``fields`` are the settings that a cell
    keeps for comparison with recorded runs.
    """

    def __init__(
        self, asked: Prepared, inputs: Inputs, sizes: Sequence[int], fields: Sequence[str]
    ) -> None:
        self._asked = asked
        self._inputs = inputs
        self._map = _cycle_only(asked.codemap, asked.question.expected or {})
        self._sizes = sizes
        self._fields = fields
        self._done = 0

    def judged(self, texts: tuple[str, ...], settings: Sequence[Setting]) -> Judged:
        """Return the cells of one launch: ``texts`` are its values on the axes."""
        self._done += 1
        if not self._done % _COLLECT_EVERY:
            gc.collect()
        asked = self._asked
        stated = changed(self._inputs, settings)
        words, drafts = asked.words, asked.evaluator.words.draft_path
        inputs = with_plain_models(stated, words, draft=stated.values.get(drafts) is not None)
        models = assumed_models(stated, inputs, words)
        evaluator = self._fresh(inputs)
        sure = cache(lambda: self._fresh(stated))
        least = least_captured(evaluator, inputs, self._fresh)
        outcomes = []
        for size in self._sizes:
            batch = replace(asked.question.batch, size=size)
            question = replace(asked.question, batch=batch, least=least, notes=())
            found = judge(self._map, evaluator, words, question, sure if models else None)
            if models and doubted(found, evaluator):
                found = marked(judge(self._map, sure(), words, question), found, models)
            elif models:
                # What the assumed models pass is still a check that other models may fail.
                found = replace(
                    found,
                    may_refuse=found.may_refuse if found.refusal else may_refuse(sure().facts()),
                    assumptions=(*models, *found.assumptions),
                )
            outcomes.append(found)
        refused = models and evaluator.facts().refused is not None
        facts = (sure() if refused else evaluator).facts()
        cells = tuple(self._cell(texts, facts, found) for found in outcomes)
        return Judged(cells, tuple(dict.fromkeys(a for o in outcomes for a in o.assumptions)))

    def _fresh(self, inputs: Inputs) -> Remembered:
        base = self._asked.evaluator
        return Remembered(base.library, base.vocabulary, inputs)

    def _cell(self, texts: tuple[str, ...], facts: LaunchFacts, found: Outcome) -> Cell:
        size = found.batch_size or 1
        sizes = found.captured.sizes
        worker = found.worker
        phases = worker.phases if worker is not None else ()
        return Cell(
            values=(*texts, str(size)),
            batch_size=size,
            workers=tuple(w.name for w in found.workers),
            phases=tuple(_phase(p, self._asked.words.options) for p in phases),
            refusal=found.refusal,
            may_refuse=found.may_refuse,
            settings=_known(facts, self._fields),
            graph_size=min((s for s in sizes or () if s >= size), default=None),
            largest_captured=max(sizes) if sizes else None,
            admitted=found.captured.admitted[1],
            tokens_per_request=found.captured.tokens_per_request,
            missing=_missing(found),
            overwritten=_overwritten(facts),
            concerns=tuple(c.message for c in found.concerns if c.failing),
            unmet=tuple(
                f"{e.phase}: expected {e.expected}, found {e.found}"
                for e in found.expectations
                if not e.met
            ),
            notes=found.notes,
        )


def _cycle_only(codemap: CodeMap, expected: Mapping[PhaseName, Verdict]) -> CodeMap:
    """Return the map with the phases of the decode cycle, and those that are asserted."""
    kept = {*CYCLE, *expected}
    workers = tuple(
        replace(worker, phases=tuple(p for p in worker.phases if p.name in kept))
        for worker in codemap.workers
    )
    return replace(codemap, workers=workers)


def _missing(found: Outcome) -> tuple[str, ...]:
    """Return what is not known; without any worker, what of the tree was not read."""
    if not found.workers and found.partial and found.refusal is None:
        return (found.partial,)
    return found.missing if _open(found) else ()


def _open(found: Outcome) -> bool:
    phases = [p for w in found.workers for p in w.phases]
    return len(found.workers) > 1 or any(p.verdict is Verdict.UNKNOWN for p in phases)


def _phase(phase: PhaseOutcome, options: Mapping[str, str]) -> CellPhase:
    unknown = phase.verdict is Verdict.UNKNOWN
    terms = phase.open_terms if unknown else phase.deciding
    first = terms[0] if terms else None
    reasons = dict.fromkeys(r for t in phase.open_terms for r in t.reasons)
    return CellPhase(
        name=phase.name,
        verdict=phase.verdict,
        could_replay=phase.could_replay,
        reason=_reason(first) if first is not None else phase.note,
        span=first.span if first is not None else None,
        missing=tuple(f"{r} ({options[r]})" if r in options else r for r in reasons),
        backend=phase.backend,
    )


def _reason(term: TermValue) -> str:
    """Say a test with its value; one of the batch size by its numbers."""
    if term.source is TermSource.SIZE and term.note:
        return term.note
    value = {True: "true", False: "false", None: "not known"}[term.value]
    return f"{term.text} is {value}"


def _known(facts: LaunchFacts, names: Sequence[str]) -> dict[str, Plain]:
    found = ((name, facts.facts.get(name)) for name in names)
    return {name: fact.value for name, fact in found if fact is not None and fact.known}


def _overwritten(facts: LaunchFacts) -> tuple[str, ...]:
    """Say which given settings the argument code replaced, by what, and where."""
    said = []
    for change in facts.changes:
        if not change.fact.known:
            continue
        spans = [o.span for o in change.fact.origins if o.span is not None]
        where = f" ({spans[-1].file}:{spans[-1].line})" if spans else ""
        said.append(f"{change.name}: {change.given} -> {change.fact.value}{where}")
    return tuple(said)
