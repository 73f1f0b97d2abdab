"""Workers and their phases: verdict, reason, evidence, and what the explorer evaluates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from specmap.codemap.condition import All, AnyOf, Condition, any_of, atoms_of, render, size_of
from specmap.codemap.event import Joined, PhaseStats, ReasonCount, Run, State
from specmap.codemap.graph import Phase, Worker
from specmap.codemap.launch import Fact
from specmap.codemap.outcome import Outcome, PhaseOutcome, TermSource, TermValue, WorkerOutcome
from specmap.codemap.verdict import SinkKind, Verdict
from specmap.report.page.settings import setting
from specmap.report.page.subject import Subject
from specmap.report.page.tables import Json, Tables
from specmap.report.page.ways import eager_ways
from specmap.report.wording import DEPENDS

_SHORT = 12
"""Tests of a condition that is written out whole."""

_WORDS = 600
_SHOWN = 6
_TRUTH = {True: "true", False: "false", None: "not known"}


def workers(subject: Subject, tables: Tables, sinks: Mapping[str, int]) -> list[Json]:
    """Return every worker of the map; ``sinks`` numbers the nodes of the graph by sink id."""
    outcome = subject.outcome
    chosen = {w.id: w for w in outcome.workers} if outcome is not None else {}
    return [
        {
            "id": worker.id,
            "name": worker.name,
            "place": tables.place(worker.span),
            "note": worker.note,
            "selection": _selection(outcome, chosen.get(worker.id)),
            "selectedWhen": tables.term(worker.selected_when),
            "selectedAt": tables.place(worker.selected_at),
            "phases": [
                _phase(subject, tables, sinks, worker, phase, chosen.get(worker.id))
                for phase in worker.phases
            ],
        }
        for worker in subject.codemap.workers
    ]


def _selection(outcome: Outcome | None, judged: WorkerOutcome | None) -> str:
    if outcome is None:
        return "open"
    if judged is None:
        return "not run"
    return "runs" if judged.certain else "may run"


def _phase(
    subject: Subject,
    tables: Tables,
    sinks: Mapping[str, int],
    worker: Worker,
    phase: Phase,
    chosen: WorkerOutcome | None,
) -> Json:
    judged = next((p for p in chosen.phases if p.name is phase.name), None) if chosen else None
    words = condition_words(phase.graph_when)
    reason, evidence = _reason(phase, judged, words)
    turns = [] if evidence else eager_ways(phase)
    reason = "; ".join([*(text for text, _ in turns[:1]), reason])
    place = evidence.span if evidence else turns[0][1] if turns else phase.span
    return {
        "name": phase.name.value,
        "role": phase.role,
        "modes": list(phase.forward_modes),
        "place": tables.place(phase.span),
        "holder": phase.holder,
        "verdict": _verdict(phase, judged),
        "assumed": judged is not None and judged.assumed,
        "ranges": _ranges(judged),
        "reason": reason,
        "evidence": tables.place(place),
        "deciding": [term(t, tables) for t in judged.deciding] if judged else [],
        "open": [term(t, tables) for t in judged.open_terms] if judged else [],
        "backend": judged.backend if judged else "",
        "couldReplay": any(arm.kind is not SinkKind.EAGER for arm in phase.arms),
        "note": phase.note,
        "words": words,
        "graphWhen": tables.term(phase.graph_when),
        "ends": _ends(phase, tables),
        "values": [
            _value(value, tables.atom(atom))
            for atom, value in subject.values.get((worker.id, phase.name), ())
        ],
        "arms": [
            {
                "kind": arm.kind.value,
                "when": tables.term(arm.condition),
                "sink": sinks[arm.sink],
                "chain": [{"symbol": symbol, "line": line} for symbol, line in arm.chain],
            }
            for arm in phase.arms
        ],
        "observed": observed(subject.run, worker.name, phase.name.value, tables),
    }


def ends_of(phase: Phase) -> Mapping[SinkKind, Condition]:
    """Return when a phase ends in each kind of sink, as the verdict is computed."""
    return {
        kind: any_of(*(arm.condition for arm in phase.arms if arm.kind is kind))
        for kind in SinkKind
    }


def _ends(phase: Phase, tables: Tables) -> Json | None:
    if not phase.arms:
        return None
    return {kind.value: tables.term(condition) for kind, condition in ends_of(phase).items()}


def _verdict(phase: Phase, judged: PhaseOutcome | None) -> str:
    if judged is not None:
        return judged.verdict.value
    return DEPENDS if phase.verdict is None else phase.verdict.value


def _ranges(judged: PhaseOutcome | None) -> list[Json]:
    return [
        {"first": r.first, "last": r.last, "verdict": r.verdict.value, "assumed": r.assumed}
        for r in (judged.ranges if judged else ())
    ]


def _reason(phase: Phase, judged: PhaseOutcome | None, words: str) -> tuple[str, TermValue | None]:
    """Return one sentence that says why, and the test that carries it."""
    if judged is not None:
        unknown = judged.verdict is Verdict.UNKNOWN
        terms = judged.open_terms if unknown else judged.deciding
        if terms:
            return said(terms[0]), terms[0]
        return judged.note or _constant(phase), None
    if phase.verdict is None:
        return f"GRAPH when {words}" if _can(phase, SinkKind.GRAPH) else _ways(phase), None
    return phase.note or _constant(phase), None


def _can(phase: Phase, kind: SinkKind) -> bool:
    return any(arm.kind is kind for arm in phase.arms)


def _ways(phase: Phase) -> str:
    return f"ends {' or '.join(dict.fromkeys(arm.kind.value for arm in phase.arms))}"


def _constant(phase: Phase) -> str:
    if not phase.arms:
        return "no pass of this kind runs"
    return f"every way {_ways(phase)}"


def said(value: TermValue) -> str:
    """Say one test: its text, its value, and where that comes from."""
    note = f", {value.note}" if value.note else ""
    needs = f" (needs {', '.join(value.reasons)})" if value.value is None and value.reasons else ""
    return f"{_flat(value.text)} is {_TRUTH[value.value]}{note}{needs}"


def _flat(text: str) -> str:
    return " ".join(text.split())


def condition_words(condition: Condition) -> str:
    """Return a condition as text, its plain tests alone where it is long."""
    if size_of(condition) <= _SHORT:
        text = _flat(render(condition))
        return text if len(text) <= _WORDS else f"{text[:_WORDS]}\N{HORIZONTAL ELLIPSIS}"
    count = len(set(atoms_of(condition)))
    if isinstance(condition, AnyOf):
        return f"one of {len(condition.terms)} ways holds, over {count} tests"
    parts = condition.terms if isinstance(condition, All) else (condition,)
    plain = [part for part in parts if size_of(part) == 1][:_SHOWN]
    more = count - len(plain)
    shown = [_flat(render(part)) for part in plain]
    return " and ".join([*shown, f"{more} more tests allow it"] if more else shown)


def term(value: TermValue, tables: Tables) -> Json:
    """Return one test with its value."""
    return {
        "text": value.text,
        "place": tables.place(value.span),
        "value": value.value,
        "source": value.source.value,
        "note": value.note,
        "reasons": list(value.reasons),
        "settings": [setting(fact, tables) for fact in _read(value)],
    }


def _read(value: TermValue) -> Iterable[Fact]:
    return value.settings


def _value(value: TermValue, atom: int) -> Json:
    return {
        "atom": atom,
        "value": None if value.source is TermSource.SIZE else value.value,
        "source": value.source.value,
        "note": value.note,
        "reasons": list(value.reasons),
    }


# What ran


def observed(run: Run | None, worker: str, phase: str, tables: Tables) -> Json | None:
    """Return what the ranks did in a phase, together; None without a run."""
    if run is None:
        return None
    seen = [p for rank in run.ranks for p in rank.phases if (p.worker, p.phase) == (worker, phase)]
    joined = next((j for j in run.joined if (j.worker, j.phase) == (worker, phase)), None)
    counts: Counter[State] = Counter()
    for stats in seen:
        counts.update(stats.counts)
    return {
        "word": _word(counts),
        "counts": states(counts),
        "agreement": joined.agreement.value if joined else "",
        "note": _note(joined),
        "reasons": [reason_count(r, tables) for r in _reasons(seen)],
        "share": max((p.share for p in seen), default=None),
    }


def _note(joined: Joined | None) -> str:
    return joined.note if joined else ""


def _word(counts: Mapping[State, int]) -> str:
    ran = [state for state, count in counts.items() if count and state is not State.CAPTURE]
    if not ran:
        return "not exercised"
    return ran[0].value if len(ran) == 1 else "mixed"


def states(counts: Mapping[State, int]) -> dict[str, int]:
    """Return passes by state, those that there are, in the order of the states."""
    return {state.value: counts[state] for state in State if counts.get(state)}


def _reasons(seen: Iterable[PhaseStats]) -> list[ReasonCount]:
    """Return the reasons of all ranks, the most frequent first."""
    found: dict[str, ReasonCount] = {}
    for reason in (r for phase in seen for r in phase.reasons):
        old = found.get(reason.text)
        first = min(reason.first_cycle, old.first_cycle) if old else reason.first_cycle
        count = reason.count + (old.count if old else 0)
        found[reason.text] = ReasonCount(reason.text, count, first, reason.span)
    return sorted(found.values(), key=lambda r: (-r.count, r.text))


def reason_count(reason: ReasonCount, tables: Tables) -> Json:
    """Return why passes did not replay, how often, since when."""
    return {
        "text": reason.text,
        "count": reason.count,
        "firstCycle": reason.first_cycle,
        "place": tables.place(reason.span),
    }
