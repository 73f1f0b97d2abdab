"""Tests of the graph decisions: gained, lost, written otherwise, and turned into errors."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher

from specmap.codemap.graph import CallEdge, CodeMap, Decision, Term, Worker
from specmap.codemap.source import Span, canonical, qualname_of
from specmap.codemap.verdict import PhaseName
from specmap.compare.asked import Callees, ReadText
from specmap.compare.attributes import said
from specmap.compare.matching import renamed, skeleton
from specmap.compare.model import Change, DecisionChange, TermChange
from specmap.compare.renames import Renames
from specmap.compare.runners import ServedPhases

_RECEIVER = re.compile(r"(?:\b\w+(?:\(\))?\.)+(?=\w)")
_NAME = re.compile(r"[A-Za-z_]\w*")
_RAISED = re.compile(r"\w*(Error|Exception)")
_WORDS = frozenset({"is", "not", "None", "in", "and", "or", "True", "False"})
# Two decisions are one when this much of their tests is the same, two tests when their
# names are this alike; short names must be the same.
_SAME_DECISION = 0.25
_SAME_TEST = 0.6
_SHORT = 12
# The kind of the test that a runner itself makes.
_OWN = "can_run"


@dataclass(frozen=True, slots=True)
class Gain:
    """A test that a graph decision has more than before; ``workers`` are names of the new map."""

    text: str
    span: Span
    phases: frozenset[PhaseName]
    workers: frozenset[str]


@dataclass(frozen=True, slots=True)
class _Test:
    """One test of a decision. ``text`` is normalised: no receivers, no ``not``.

    ``beside`` are tests of which any one is enough where this one fails. ``calls`` are the
    functions that the test asks, ``of`` the test that asks the function that this one is in.
    """

    text: str
    said: str
    span: Span
    beside: frozenset[str] = frozenset()
    calls: frozenset[str] = frozenset()
    of: str = ""


@dataclass(frozen=True, slots=True)
class _Decided:
    """All decisions of one kind in one function."""

    kind: str
    holder: str
    span: Span
    tests: Mapping[str, _Test]
    phases: frozenset[PhaseName]
    workers: frozenset[str]


def decision_changes(
    old: CodeMap, new: CodeMap, workers: Sequence[tuple[Worker, Worker]], renames: Renames
) -> Iterator[DecisionChange]:
    """Compare the decisions of the workers that both maps have.

    A test that only went from one decision of a phase to another did not change.
    """
    names = {was.id: now.name for was, now in workers} | {now.id: now.name for _, now in workers}
    before = _decided(old, names, renames.words)
    after = _decided(new, names, {})
    raising = _new_errors(old, new)
    pairs, gone, come = _paired(before, after, renames)
    here = {phase: _tests_of(after, phase) for phase in PhaseName}
    there = {phase: _tests_of(before, phase) for phase in PhaseName}
    for was, now in pairs:
        moved = set.intersection(*(here[phase] for phase in was.phases))
        known = set.intersection(*(there[phase] for phase in now.phases))
        terms = [
            replace(term, error=_error(term.text, now.holder, raising))
            if term.change is Change.REMOVED
            else term
            for term in _changes(was.tests, now.tests, moved, known)
        ]
        if terms:
            yield _change(
                Change.CHANGED, now, terms, "" if was.holder == now.holder else was.holder
            )
    for change, alone, elsewhere in ((Change.REMOVED, gone, here), (Change.ADDED, come, there)):
        for decided in alone:
            other = set.intersection(*(elsewhere[phase] for phase in decided.phases))
            whole = [
                TermChange(change, test.said, test.span)
                for text, test in decided.tests.items()
                if text not in other
            ]
            if whole:
                yield _change(change, decided, whole)


def gained_tests(
    old: CodeMap,
    new: CodeMap,
    workers: Sequence[tuple[Worker, Worker]],
    renames: Renames,
    reads: tuple[ReadText, ReadText],
) -> Iterator[Gain]:
    """Yield the tests that decisions of both maps have only in the new one.

    A function that a decision calls counts by what it tests, which ``reads`` say of the old and
    of the new tree: a test that moved into one, or out of one, is not new, nor is one that
    differs only in names that nothing had before. A test of which another is enough in its
    place, and was there before, takes nothing out of the graph. A runner that comes is held
    against the one that it derives from.
    """
    names = {was.id: now.name for was, now in workers} | {now.id: now.name for _, now in workers}
    before = _decided(old, names, renames.everything, Callees(old, reads[0]))
    after = _decided(new, names, {}, Callees(new, reads[1]))
    functions = {renames.qualname(qualname_of(function.id)) for function in old.functions}
    words = {word for texts in said(old).values() for text in texts for word in _NAME.findall(text)}
    pairs, _, come = _paired(before, after, renames)
    derived = list(_derived(before, come, new, renames))
    for was, now in [*pairs, *derived]:
        known = set.intersection(*(_tests_of(before, phase) for phase in now.phases))
        moved = set.intersection(*(_tests_of(after, phase) for phase in was.phases))
        _, lost, gained = _aligned(was.tests, now.tests, moved, known)
        texts = {test.text for test in gained}
        for test in gained:
            if any(_is_named_anew(test.text, other.text, words) for other in lost):
                continue
            if (was, now) in derived and test.text.startswith(f"{now.holder.rpartition('.')[2]}("):
                continue
            inner = [other for other in now.tests.values() if other.of == test.text]
            # A new function stands for its tests; of a known one that is asked now, the call.
            spelt_out = inner and not test.calls & functions
            if spelt_out or (test.of in texts and now.tests[test.of].calls & functions):
                continue
            if not test.beside & was.tests.keys():
                yield Gain(test.said, test.span, now.phases, now.workers)


def _decided(
    codemap: CodeMap,
    names: Mapping[str, str],
    words: Mapping[str, str],
    callees: Callees | None = None,
) -> list[_Decided]:
    served = ServedPhases(codemap)
    grouped: dict[tuple[str, str], list[Decision]] = defaultdict(list)
    for decision in codemap.decisions:
        if decision.phases and any(worker in names for worker in decision.workers):
            grouped[decision.kind, decision.holder].append(decision)
    return [
        _Decided(
            kind=kind,
            holder=qualname_of(holder),
            span=decisions[0].span,
            tests={test.text: test for d in decisions for test in _tests(d, words, callees)},
            phases=frozenset(phase for d in decisions for phase in served.of(d)),
            workers=frozenset(names[w] for d in decisions for w in d.workers if w in names),
        )
        for (kind, holder), decisions in grouped.items()
    ]


def _tests(
    decision: Decision, words: Mapping[str, str], callees: Callees | None
) -> Iterator[_Test]:
    joined = {term.conjunct_of for term in decision.terms}
    for term in decision.terms:
        parts = [t for t in decision.terms if t.text != term.text and t.text in term.text]
        if term.text not in joined and not parts:
            text = _normal(term.text, words)
            beside = frozenset(_normal(other, words) for other in _beside(term, decision))
            called = callees.of(decision, term) if callees is not None else []
            for function in called:
                for asked in callees.tests(function, term.graph_when) if callees else ():
                    others = frozenset(_normal(other, words) for other in asked.beside)
                    inside = _normal(asked.text, words)
                    yield _Test(inside, asked.text, asked.span, others, of=text)
            calls = frozenset(qualname_of(function.id) for function in called)
            yield _Test(text, canonical(term.text), term.span, beside, calls)


def _normal(text: str, words: Mapping[str, str]) -> str:
    return renamed(_RECEIVER.sub("", canonical(text)).removeprefix("not ").strip(), words)


def _beside(term: Term, decision: Decision) -> Iterator[str]:
    """Yield the operands beside a term of which any one is enough for the graph."""
    own = _joined(term.text, ast.Or if term.graph_when else ast.And)
    yield from (ast.unparse(operand) for operand in own)
    around = [whole for whole in decision.terms if whole.text == term.conjunct_of]
    if any(_joined(whole.text, ast.Or if whole.graph_when else ast.And) for whole in around):
        others = (t for t in decision.terms if t.conjunct_of == term.conjunct_of)
        yield from (other.text for other in others if other.text != term.text)


def _joined(text: str, operator: type[ast.boolop]) -> list[ast.expr]:
    """Return the operands of an expression that joins them so."""
    try:
        tree = ast.parse(canonical(text), mode="eval").body
    except SyntaxError:
        return []
    return tree.values if isinstance(tree, ast.BoolOp) and isinstance(tree.op, operator) else []


def _paired(
    before: Sequence[_Decided], after: Sequence[_Decided], renames: Renames
) -> tuple[list[tuple[_Decided, _Decided]], list[_Decided], list[_Decided]]:
    """Pair decisions by name, then those that share most tests."""
    scores = sorted(
        ((_likeness(was, now, renames), i, j)
         for i, was in enumerate(before) for j, now in enumerate(after)),
        key=lambda score: (-score[0], score[1], score[2]),
    )  # fmt: skip
    partner: dict[int, int] = {}
    for score, i, j in scores:
        if score >= _SAME_DECISION and i not in partner and j not in partner.values():
            partner[i] = j
    pairs = [(before[i], after[j]) for i, j in sorted(partner.items())]
    gone = [was for i, was in enumerate(before) if i not in partner]
    return pairs, gone, [now for j, now in enumerate(after) if j not in partner.values()]


def _derived(
    before: Sequence[_Decided], come: Sequence[_Decided], new: CodeMap, renames: Renames
) -> Iterator[tuple[_Decided, _Decided]]:
    """Pair the own test of a runner that comes with that of the next class it derives from."""
    owners = {renames.qualname(d.holder).rpartition(".")[0]: d for d in before if d.kind == _OWN}
    lines = {qualname_of(record.id): record.mro for record in new.classes}
    for now in come:
        line = map(qualname_of, lines.get(now.holder.rpartition(".")[0], ()))
        was = next((owners[name] for name in line if name in owners), None)
        if now.kind == _OWN and was is not None and was.phases & now.phases:
            yield was, now


def _likeness(was: _Decided, now: _Decided, renames: Renames) -> float:
    if was.kind != now.kind or not was.phases & now.phases:
        return 0.0
    shared = len(was.tests.keys() & now.tests.keys())
    if not shared and len(was.tests) == len(now.tests) == 1:
        shared = int(_alike(*was.tests, *now.tests) >= _SAME_TEST)
    same = shared / max(min(len(was.tests), len(now.tests)), 1)
    owner, _, name = renames.qualname(was.holder).rpartition(".")
    if (owner, name) == (now.holder.rpartition(".")[0], now.holder.rpartition(".")[2]):
        return 2.0 + same
    return 1.0 + same if owner and same and now.holder.startswith(f"{owner}.") else same


def _tests_of(decided: Iterable[_Decided], phase: PhaseName) -> set[str]:
    return {text for decision in decided if phase in decision.phases for text in decision.tests}


def _changes(
    before: Mapping[str, _Test], after: Mapping[str, _Test], moved: set[str], known: set[str]
) -> Iterator[TermChange]:
    renamed_, lost, gained = _aligned(before, after, moved, known)
    for was, now in renamed_:
        yield TermChange(Change.RENAMED, now.said, now.span, was.said)
    yield from (TermChange(Change.REMOVED, test.said, test.span) for test in lost)
    yield from (TermChange(Change.ADDED, test.said, test.span) for test in gained)


def _aligned(
    before: Mapping[str, _Test], after: Mapping[str, _Test], moved: set[str], known: set[str]
) -> tuple[list[tuple[_Test, _Test]], list[_Test], list[_Test]]:
    """Return the tests that have another name, and those that are only old and only new."""
    lost = [test for text, test in before.items() if text not in after and text not in moved]
    gained = [test for text, test in after.items() if text not in before and text not in known]
    alike = sorted(
        ((_alike(one.text, other.text), i, j)
         for i, one in enumerate(lost) for j, other in enumerate(gained)),
        key=lambda score: (-score[0], score[1], score[2]),
    )  # fmt: skip
    partner: dict[int, int] = {}
    for score, i, j in alike:
        if score >= _SAME_TEST and i not in partner and j not in partner.values():
            partner[i] = j
    return (
        [(lost[i], gained[j]) for i, j in partner.items()],
        [test for i, test in enumerate(lost) if i not in partner],
        [test for j, test in enumerate(gained) if j not in partner.values()],
    )


def _is_named_anew(now: str, was: str, known: set[str]) -> bool:
    """Tell whether two tests differ in words only, which the new one has and nothing ``known``."""
    pairs = zip(_NAME.findall(now), _NAME.findall(was), strict=False)
    return skeleton(now) == skeleton(was) and not any(a != b and a in known for a, b in pairs)


def _alike(one: str, other: str) -> float:
    """Return how alike the names of two tests are that are otherwise the same."""
    if _NAME.sub("x", one) != _NAME.sub("x", other):
        return 0.0
    pairs = list(zip(_names(one), _names(other), strict=False))
    if len(pairs) != len(_names(one)) or any(_differ(a, b) for a, b in pairs):
        return 0.0
    ratios = [SequenceMatcher(None, a, b).ratio() for a, b in pairs]
    return sum(ratios) / len(ratios) if ratios else 0.0


def _names(text: str) -> list[str]:
    return [name for name in _NAME.findall(text) if name not in _WORDS]


def _differ(one: str, other: str) -> bool:
    """Classes, constants and short names are other things under another name."""
    fixed = one[:1].isupper() or other[:1].isupper() or min(len(one), len(other)) < _SHORT
    return one != other and fixed


def _change(
    change: Change, decided: _Decided, terms: Iterable[TermChange], was: str = ""
) -> DecisionChange:
    order = {Change.REMOVED: 0, Change.ADDED: 1, Change.RENAMED: 2}
    return DecisionChange(
        change=change,
        kind=decided.kind,
        holder=decided.holder,
        was=was,
        span=decided.span,
        phases=tuple(phase for phase in PhaseName if phase in decided.phases),
        workers=tuple(sorted(decided.workers)),
        terms=tuple(
            sorted(terms, key=lambda t: (t.error is None, order[t.change], t.span, t.text))
        ),
    )


def _new_errors(old: CodeMap, new: CodeMap) -> list[tuple[str, set[str], Span]]:
    """Return class, names and place of every test that leads to a raise only in the new map."""
    known = {guard.text for edge in _raises(old) for guard in edge.guards[-1:]}
    return [
        (qualname_of(edge.caller).rpartition(".")[0], set(_NAME.findall(guard.text)), edge.span)
        for edge in _raises(new)
        for guard in edge.guards[-1:]
        if guard.text not in known
    ]


def _raises(codemap: CodeMap) -> Iterator[CallEdge]:
    return (edge for edge in codemap.edges if _RAISED.fullmatch(edge.text))


def _error(text: str, holder: str, raising: Sequence[tuple[str, set[str], Span]]) -> Span | None:
    """Return where the deciding class now raises over the names of a lost test."""
    owner = holder.rpartition(".")[0]
    words = {word for word in _NAME.findall(text) if len(word) >= _SHORT}
    return next((span for where, said, span in raising if where == owner and words & said), None)
