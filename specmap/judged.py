"""Puts a launch beside a map for a page: verdicts, the truth of every test, and what would help."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from specmap.codemap.condition import Atom, atoms_of
from specmap.codemap.event import Run
from specmap.codemap.explanation import Alternative
from specmap.codemap.graph import Phase
from specmap.codemap.launch import Fact, Plain
from specmap.codemap.outcome import CYCLE, Outcome, TermSource, TermValue
from specmap.codemap.source import Span, canonical
from specmap.codemap.verdict import PhaseName, Verdict
from specmap.launched import Prepared
from specmap.report.page.phases import ends_of
from specmap.report.page.secrets import UNRECORDED, shown
from specmap.report.page.settings import text_of
from specmap.report.page.subject import Subject

if TYPE_CHECKING:
    from specmap.verdicts.phases import Judge
    from specmap.verdicts.sizes import SizeTest
    from specmap.verdicts.words import VerdictWords

_NAMED = 5


def with_launch(subject: Subject, prepared: Prepared) -> Subject:
    """Return a side with the outcome of a launch, and what it makes of every test."""
    outcome = prepared.judged()
    court = prepared.court()
    chosen = {worker.id for worker in outcome.workers}
    sizes: dict[tuple[Atom, Span | None], SizeTest | None] = {}
    values = {
        (worker.id, phase.name): _values(court, phase, sizes)
        for worker in subject.codemap.workers
        if worker.id in chosen
        for phase in worker.phases
    }
    return replace(
        subject, outcome=outcome, values=values,
        size_test=lambda atom: sizes.get((atom, atom.span)),
        facts=prepared.settings().facts().facts, changes=_alternatives(prepared, outcome),
    )  # fmt: skip


def _values(
    court: Judge, phase: Phase, sizes: dict[tuple[Atom, Span | None], SizeTest | None]
) -> tuple[tuple[Atom, TermValue], ...]:
    court.truths.phase = phase.name
    found = tuple((atom, court.truths.value(atom)) for atom in _atoms(phase))
    for atom, term in found:
        if term.source is TermSource.SIZE:
            sizes[atom, atom.span] = court.truths.size_test(atom)
    return found


def _atoms(phase: Phase) -> list[Atom]:
    """Return the tests of a phase's ends, each at each of its places."""
    found = {(a, a.span): a for term in ends_of(phase).values() for a in atoms_of(term)}
    return list(found.values())


def without_launch(subject: Subject) -> Subject:
    """Say what a steady batch makes of the tests; everything else is open."""
    from specmap.verdicts.words import load_words

    words = load_words()
    values = {
        (worker.id, phase.name): tuple(
            (atom, _assumed(words, phase.name, atom)) for atom in _atoms(phase)
        )
        for worker in subject.codemap.workers
        for phase in worker.phases
    }
    return replace(subject, values=values, size_test=lambda atom: words.captured(atom.text))


def _assumed(words: VerdictWords, phase: PhaseName, atom: Atom) -> TermValue:
    text = canonical(atom.text)
    taken = None if words.captured(text) else words.assumption(phase, text)
    if taken is not None:
        note = words.reasons[taken.key]
        return TermValue(atom.text, atom.span, taken.value, TermSource.ASSUMED, note)
    source = TermSource.SIZE if text in words.sizes else TermSource.UNKNOWN
    return TermValue(atom.text, atom.span, None, source)


def _alternatives(
    prepared: Prepared, outcome: Outcome
) -> Mapping[PhaseName, tuple[Alternative, ...]]:
    """Return what would give back the graph of the decode phases that lost it, verify first."""
    from specmap.why.changes import alternatives

    lost = [
        phase
        for phase in (outcome.worker.phases if outcome.worker is not None else ())
        if phase.name in CYCLE and phase.could_replay and phase.verdict is Verdict.EAGER
    ]
    evaluator = prepared.settings()
    facts = evaluator.facts().facts
    setup = prepared.setup()
    found: dict[PhaseName, tuple[Alternative, ...]] = {}
    for phase in sorted(lost, key=lambda phase: phase.name is not PhaseName.VERIFY):
        found[phase.name] = alternatives(setup, facts, phase, ())
        if not found[phase.name]:
            break  # one search in vain is long enough
    return found


# A launch beside a run


def unlike(judged: Subject, run: Run | None) -> str:
    """Say in what a launch is not that of a run, "" where it may be.

    A setting that the launch leaves at None may get its value while the server starts. What
    decides how the phases end is named first.
    """
    if run is None or not run.ranks:
        return ""
    refused = refused_though_ran(judged, run)
    if refused:
        return f"it would be refused ({refused})"
    recorded = run.ranks[0].arguments
    names = [n for n in set(judged.facts) & set(recorded) if _other(judged.facts[n], recorded[n])]
    telling = judged.telling
    names.sort(key=lambda name: (name not in telling, name))
    said = [
        f"{name} {_value(judged.facts[name])}, the run {shown(name, text_of(recorded[name]))}"
        for name in names[:_NAMED]
    ]
    if len(names) > _NAMED:
        said.append(f"and {len(names) - _NAMED} more")
    return "; ".join([*_other_worker(judged, run), *said])


def _other_worker(judged: Subject, run: Run) -> list[str]:
    chosen = {w.name for w in judged.outcome.workers} if judged.outcome is not None else set()
    known = {worker.name for worker in judged.codemap.workers}
    ran = {phase.worker for rank in run.ranks for phase in rank.phases} & known
    if not ran or chosen & ran:
        return []
    return [f"worker {' or '.join(sorted(chosen)) or 'none'}, the run {' and '.join(sorted(ran))}"]


def _other(fact: Fact, ran: Plain) -> bool:
    if ran == UNRECORDED:
        return False
    possible = (fact.value,) if fact.known else fact.alternatives
    return bool(possible) and None not in possible and ran not in possible


def _value(fact: Fact) -> str:
    values = (fact.value,) if fact.known else fact.alternatives
    return " or ".join(shown(fact.name, text_of(value)) for value in values)


def refused_though_ran(judged: Subject, run: Run | None) -> str:
    """Return where and how a launch is refused although the server ran, "" where it is not."""
    refusal = judged.outcome.refusal if judged.outcome is not None else None
    if refusal is None or run is None or not any(rank.phases for rank in run.ranks):
        return ""
    return f"{refusal.span.file}:{refusal.span.line}: {refusal.message}"
