"""Which worker a launch selects, and what kept the others out."""

from __future__ import annotations

from dataclasses import dataclass

from specmap.codemap.condition import Atom, atoms_of
from specmap.codemap.graph import CodeMap, Worker
from specmap.codemap.launch import Fact
from specmap.codemap.outcome import TermValue, WorkerOutcome
from specmap.verdicts.phases import Judge
from specmap.verdicts.settling import deciding


@dataclass(frozen=True, slots=True)
class PassedOver:
    """A worker that one setting alone kept out: ``term`` is the test that it fails."""

    worker: Worker
    term: TermValue
    setting: Fact


def select(codemap: CodeMap, judge: Judge) -> tuple[WorkerOutcome, ...]:
    """Return the worker that runs, or every worker that may."""
    found = {w.id: judge.holds(w.selected_when) for w in codemap.workers}
    sure = [w for w in codemap.workers if found[w.id] is True]
    # Two that are both certain means that the map cannot tell them apart.
    chosen = sure or [w for w in codemap.workers if found[w.id] is None]
    certain = len(sure) == 1
    return tuple(selected(worker, judge, certain=certain) for worker in chosen)


def selected(worker: Worker, judge: Judge, *, certain: bool = True) -> WorkerOutcome:
    """Return how the phases of a worker end that runs, or may."""
    tests = {atom.text for p in worker.phases for arm in p.arms for atom in atoms_of(arm.condition)}
    return WorkerOutcome(
        id=worker.id,
        name=worker.name,
        span=worker.span,
        selected_at=worker.selected_at,
        certain=certain,
        open_terms=() if certain else judge.open_terms(worker.selected_when),
        phases=tuple(judge.phase(phase, tests) for phase in worker.phases),
    )


def running(codemap: CodeMap, judge: Judge) -> Worker | None:
    """Return the one worker that certainly runs, or None."""
    sure = [w for w in codemap.workers if judge.holds(w.selected_when) is True]
    return sure[0] if len(sure) == 1 else None


def passed_over(
    codemap: CodeMap, judge: Judge, switches: tuple[str, ...]
) -> tuple[PassedOver, ...]:
    """Return the workers that would run if one of the switches stood the other way."""
    found = []
    for worker in codemap.workers:
        if judge.holds(worker.selected_when) is not False:
            continue
        failing = _failing(worker, judge)
        settings = {f.name: f for term in failing for f in term.settings}
        named = [name for name in switches if name in settings]
        if len(failing) == 1 and named:
            found.append(PassedOver(worker, failing[0], settings[named[0]]))
    return tuple(found)


def _failing(worker: Worker, judge: Judge) -> tuple[TermValue, ...]:
    """Return the tests that keep a worker out, if the rest of its condition holds."""

    def value(atom: Atom) -> bool | None:
        return judge.truths.value(atom).value

    term = worker.selected_when
    parts = getattr(term, "terms", (term,))
    failing = [part for part in parts if judge.holds(part) is False]
    if len(failing) != 1 or any(judge.holds(part) is None for part in parts):
        return ()
    atoms = deciding(failing[0], value, lambda atom: 0)
    return tuple(judge.truths.value(atom) for atom in atoms)
