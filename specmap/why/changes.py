"""The smallest changes of a launch that give a phase another verdict."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

from specmap.codemap.explanation import Alternative, SettingChange
from specmap.codemap.graph import CodeMap
from specmap.codemap.launch import Fact
from specmap.codemap.outcome import PhaseOutcome, TermSource, TermValue
from specmap.codemap.verdict import PhaseName, Verdict
from specmap.scan.launch.evaluator import Evaluator
from specmap.scan.launch.tables import Inputs
from specmap.verdicts.outcome import court_of, stopped
from specmap.verdicts.truths import Batch
from specmap.verdicts.words import VerdictWords
from specmap.verdicts.workers import running, selected

_ENVIRONMENT = re.compile(r"envs\.(\w+)\.get\(\)")
# Evaluations that a search may take, and answers that it gives.
_TRIES = 60
_ANSWERS = 3


@dataclass(frozen=True, slots=True)
class Setup:
    """A launch that can be changed and evaluated again; ``fields`` are its settings.

    ``admitted`` is how many requests run at least, where known; ``flags`` gives the argument of a
    setting that takes one value, ``switches`` that of one which is turned on.
    """

    codemap: CodeMap
    words: VerdictWords
    batch: Batch
    inputs: Inputs
    fields: frozenset[str]
    fresh: Callable[[Inputs], Evaluator]
    admitted: int | None = None
    flags: Mapping[str, str] = field(default_factory=dict)
    switches: Mapping[str, str] = field(default_factory=dict)


def alternatives(
    setup: Setup, facts: Mapping[str, Fact], phase: PhaseOutcome, needs: Sequence[TermValue]
) -> tuple[Alternative, ...]:
    """Return up to three smallest sets of changes; none where the search finds none.

    Tried are the settings that the deciding tests read, and those of all tests (``needs``)
    where the graph replays: a given argument is taken away, a
    switch is flipped, a backend is replaced, a capture limit is raised to what is admitted.
    """
    replays = phase.verdict in (Verdict.GRAPH, Verdict.PIECEWISE)
    terms = needs if replays else (*phase.deciding, *phase.open_terms)
    switches = setup.words.switches if replays else ()
    search = _Search(setup, phase)
    singles = list(dict.fromkeys(_candidates(setup, facts, terms, switches)))
    if not search.tried((change,) for change in singles):
        search.tried((*search.after, *combinations(singles, 2)))
    return tuple(
        replace(a, changes=tuple(replace(c, argument=_spelled(setup, c)) for c in a.changes))
        for a in search.found or search.partly
    )


def _spelled(setup: Setup, change: SettingChange) -> str:
    """Return a change as a launch command would have it, "" where it has no argument."""
    if change.name not in setup.fields:
        return f"{change.name}={change.new}"
    flag = setup.flags.get(change.name, "")
    switch = setup.switches.get(change.name, "")
    if change.removed or change.new is False:
        given = change.name in setup.inputs.values
        return f"without {flag or switch}" if given and (flag or switch) else ""
    if change.new is True:
        return switch
    return f"{flag} {change.new}" if flag else ""


class _Search:
    """Tries changes until enough are found. ``after`` are pairs that single changes lead to.

    ``partly`` are changes that do not help every batch that is admitted.

    A change that leaves the phase eager for another reason is followed by what that reason reads.
    """

    def __init__(self, setup: Setup, phase: PhaseOutcome) -> None:
        self.found: list[Alternative] = []
        self.partly: list[Alternative] = []
        self.after: list[tuple[SettingChange, ...]] = []
        self._setup = setup
        self._phase = phase
        self._wanted = _other(phase.verdict)
        self._tries = 0

    def tried(self, sets: Iterable[tuple[SettingChange, ...]]) -> bool:
        """Try some sets of changes; say whether any of them will do."""
        for changes in dict.fromkeys(sets):
            if _ANSWERS in (len(self.found), len(self.partly)) or self._tries >= _TRIES:
                break
            if len({change.name for change in changes}) < len(changes):
                continue
            self._tries += 1
            self._try(changes)
        return bool(self.found or self.partly)

    def _try(self, changes: tuple[SettingChange, ...]) -> None:
        setup, before = self._setup, self._phase
        changed = replace(setup, inputs=_changed(setup.inputs, changes, setup.fields))
        evaluator = setup.fresh(changed.inputs)
        now = _judged(changed, evaluator, before.name)
        if now is None:
            return
        if now.verdict is not before.verdict and now.verdict in self._wanted:
            whole = all(part.verdict in self._wanted for part in now.ranges)
            (self.found if whole else self.partly).append(Alternative(changes, now.verdict))
        elif len(changes) == 1 and _texts(now) != _texts(before):
            facts = evaluator.facts().facts
            more = _candidates(changed, facts, (*now.deciding, *now.open_terms), ())
            self.after += [(*changes, change) for change in more if change.old != change.new]


def _texts(phase: PhaseOutcome) -> list[str]:
    return [term.text for term in (*phase.deciding, *phase.open_terms)]


def _other(verdict: Verdict) -> tuple[Verdict, ...]:
    if verdict in (Verdict.GRAPH, Verdict.PIECEWISE):
        return (Verdict.EAGER, Verdict.NOT_RUN)
    return (Verdict.GRAPH, Verdict.PIECEWISE)


def _candidates(
    setup: Setup,
    facts: Mapping[str, Fact],
    terms: Sequence[TermValue],
    switches: Sequence[str],
) -> Iterator[SettingChange]:
    given = setup.inputs.values
    names = list(dict.fromkeys((*(s.name for term in terms for s in term.settings), *switches)))
    if any(term.source is TermSource.SIZE for term in terms):
        yield from _limits(setup, facts)
    for name in names:
        if name in given:
            yield SettingChange(name, _plain(given[name]), None, removed=True)
    for name in names:
        fact = facts.get(name)
        if fact is not None and fact.known and isinstance(fact.value, bool):
            yield SettingChange(name, fact.value, not fact.value)
    yield from _variables(setup, terms)
    for name in names:
        fact = facts.get(name)
        for value in setup.words.values.get(name, ()):
            if fact is None or fact.value != value:
                yield SettingChange(name, fact.value if fact else None, value)


def _limits(setup: Setup, facts: Mapping[str, Fact]) -> Iterator[SettingChange]:
    given, size = setup.inputs.values, setup.batch.size
    most = None if size is None else max(size, setup.admitted or 0)
    for name in setup.words.limits:
        if name in given:
            yield SettingChange(name, _plain(given[name]), None, removed=True)
    if most is not None:
        for name in setup.words.limits:
            fact = facts.get(name)
            if fact is not None and isinstance(fact.value, int) and fact.value < most:
                yield SettingChange(name, fact.value, most)


def _variables(setup: Setup, terms: Sequence[TermValue]) -> Iterator[SettingChange]:
    for term in terms:
        for name in _ENVIRONMENT.findall(term.text):
            old = setup.inputs.environment.get(name)
            yield SettingChange(name, old, "0" if term.value else "1")


def _plain(value: object) -> bool | int | float | str | None:
    return value if isinstance(value, bool | int | float | str) else str(value)


def _changed(inputs: Inputs, changes: Sequence[SettingChange], names: frozenset[str]) -> Inputs:
    values, environment = dict(inputs.values), dict(inputs.environment)
    for change in changes:
        if change.removed:
            values.pop(change.name, None)
        elif change.name in names:
            values[change.name] = change.new
        else:
            environment[change.name] = str(change.new)
    return replace(inputs, values=values, environment=environment)


def _judged(setup: Setup, evaluator: Evaluator, name: PhaseName) -> PhaseOutcome | None:
    """Return how a phase ends under the settings; None where the server refuses."""
    if evaluator.lost is not None:
        return None
    court = court_of(evaluator, setup.words, setup.batch)
    worker = running(setup.codemap, court)
    if worker is None:
        return None
    asked = replace(worker, phases=tuple(p for p in worker.phases if p.name == name))
    made = selected(asked, court)
    return next(iter(made.phases), None) if stopped(evaluator, (made,)) is None else None
