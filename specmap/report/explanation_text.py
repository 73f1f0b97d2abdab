"""Why a place behaves as it does, as text for people."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from specmap.codemap.explanation import (
    Alternative,
    Clause,
    Explanation,
    Hop,
    Joined,
    Likely,
    PhaseReason,
    PlaceReason,
    Route,
    SettingChange,
)
from specmap.codemap.launch import Fact, FactOrigin, OriginKind
from specmap.codemap.outcome import LOG_AGAINST_SOURCE, Outcome, TermSource
from specmap.codemap.source import qualname_of
from specmap.report.options import RenderOptions
from specmap.report.outcome_text import decided, model_lines, place, said
from specmap.report.text_parts import console, heading, indent, word
from specmap.report.wording import base_hint, guard_text

_JOINED = {Joined.ALL: "all of:", Joined.ANY: "any of:"}
# A longer condition is shown without what does not matter, and with so many alternatives.
_WHOLE = 60
_ALTERNATIVES = 3
_SHOWN_SETTINGS = 4
_LONGEST_VALUE = 80


def render_explanation(explanation: Explanation, options: RenderOptions) -> str:
    """Return the explanation; trailing spaces are removed."""
    out, sink = console(options)
    for block in _blocks(explanation):
        out.print(block)
    return "\n".join(line.rstrip() for line in sink.getvalue().splitlines()).rstrip() + "\n"


def _blocks(explanation: Explanation) -> Iterator[RenderableType]:
    if explanation.outcome is not None and explanation.phases:
        ran = {worker.name for worker in explanation.outcome.workers}
        if all(reason.worker not in ran for reason in explanation.phases):
            for reason in explanation.phases:
                yield Text(f"{reason.worker}.{reason.phase.value}: {reason.note}")
            return
    yield heading(explanation.place, explanation.target)
    for text in model_lines(explanation.outcome) if explanation.outcome is not None else ():
        yield Text(text)
    if explanation.found is not None:
        yield from _place(explanation.found)
    for reason in explanation.phases:
        yield from _phase(reason, explanation)
    if explanation.found is not None and explanation.outcome is not None:
        yield from _place_under_launch(explanation.found, explanation.outcome)
    concerns = explanation.outcome.concerns if explanation.outcome is not None else ()
    for concern in concerns:
        if concern.kind == LOG_AGAINST_SOURCE:
            yield from ("", heading("The server's log"), indent(Text(concern.message)))
    if explanation.outcome is not None and explanation.outcome.notes:
        yield ""
        yield heading("Read")
        for note in explanation.outcome.notes:
            yield indent(Text(note))
    if hint := base_hint(explanation.target):
        yield from ("", Text(hint))


# A place


def _place(found: PlaceReason) -> Iterator[RenderableType]:
    symbol = qualname_of(found.symbol) or found.symbol
    yield Text(f"{place(found.span)} in {symbol}" if found.span is not None else symbol)
    if found.source:
        yield indent(Text(found.source, style="bold"))
    for fact in found.facts:
        yield indent(Text(fact))
    for guard in found.guards:
        yield indent(Text(f"guard, line {guard.span.line}: {guard_text(guard)}"))
    decided_here: dict[str, list[str]] = {}
    for test in found.tests:
        if test.value is None:
            name = f"{qualname_of(test.worker)}.{test.phase}"
            decided_here.setdefault(test.atom.text, []).append(name)
    for text, names in decided_here.items():
        yield indent(Text(f"test: {text}; it decides {', '.join(dict.fromkeys(names))}"))
    if found.passes:
        whose = "the function is " if found.source else ""
        yield indent(Text(f"{whose}on the way of: {', '.join(found.passes)}"))
    if found.likely:
        yield ""
        yield heading("Lines that may have been meant")
        for likely in found.likely:
            yield indent(Text(_likely(likely)))


def _likely(likely: Likely) -> str:
    release = f"{likely.release}: " if likely.release else ""
    return f"{release}{place(likely.span)}: {likely.why}: {likely.text}"


def _place_under_launch(found: PlaceReason, outcome: Outcome) -> Iterator[RenderableType]:
    """Yield what a launch makes of the phases through a place, or who runs instead of them."""
    told = False
    for worker in outcome.workers:
        for phase in worker.phases:
            tests = [
                test.value
                for test in found.tests
                if test.value and (test.worker, test.phase) == (worker.id, phase.name)
            ]
            if tests or f"{worker.name}.{phase.name}" in found.passes:
                told = True
                yield ""
                yield Text.assemble(f"{worker.name}.{phase.name}: ", word(phase.verdict.value))
                for value in tests:
                    yield indent(Text(f"the test here: {said(value)}"))
                yield indent(decided(phase))
    if not told and (found.span is not None or found.passes):
        yield ""
        yield Text(f"{runs(outcome)}: none of its phases goes through here")


def runs(outcome: Outcome) -> str:
    """Say which worker a launch runs."""
    if outcome.refusal is not None:
        return "The server refuses to start with this launch"
    names = " or ".join(worker.name for worker in outcome.workers)
    return f"This launch {'runs' if outcome.worker else 'may run'} {names or 'no worker'}"


# A phase


def _phase(reason: PhaseReason, explanation: Explanation) -> Iterator[RenderableType]:
    yield Text.assemble(
        f"{reason.worker}.{reason.phase.value}: ",
        word(reason.verdict.value if reason.verdict is not None else "depends"),
    )
    if reason.note:
        yield indent(Text(reason.note))
    if explanation.outcome is not None:
        for worker in explanation.outcome.workers:
            for phase in worker.phases:
                if worker.name == reason.worker and phase.name is reason.phase:
                    yield indent(decided(phase))
    yield ""
    yield heading("From the scheduler", f"{place(reason.selected_at)}, selected when "
                  f"{reason.selected_when}")  # fmt: skip
    for route in reason.routes:
        yield from _route(route)
    if reason.replays is not None:
        yield ""
        yield heading("The graph replays when", _JOINED.get(reason.replays.joined, ""))
        yield from _top(reason.replays)
    if reason.alternatives:
        yield ""
        yield heading("Another verdict")
        for alternative in reason.alternatives:
            yield indent(_alternative(alternative))


def _route(route: Route) -> Iterator[RenderableType]:
    yield ""
    yield Text.assemble("to ", word(route.kind.value))
    for hop in route.hops:
        yield from _hop(hop)


def _hop(hop: Hop) -> Iterator[RenderableType]:
    call = f"  calls {hop.text}" if hop.text else ""
    yield indent(Text(f"{place(hop.span)}  {qualname_of(hop.symbol)}{call}"))
    for guard in hop.guards:
        yield indent(Text(f"line {guard.span.line}: {guard_text(guard)}", style="dim"), 6)


def _top(clause: Clause) -> Iterator[RenderableType]:
    told: set[str] = set()
    long = _size(clause) > _WHOLE
    parts, left = _parts(clause, long)
    for part in parts if clause.parts else (clause,):
        yield from _clause(part, 2, told, long)
    if left:
        yield indent(Text(left, style="dim"))


def _size(clause: Clause) -> int:
    return 1 + sum(map(_size, clause.parts))


def _parts(clause: Clause, long: bool) -> tuple[tuple[Clause, ...], str]:
    """Return the parts to show and what to say of the others; ``long``: not all are shown."""
    if not long or (clause.matters and clause.joined is not Joined.ANY):
        return clause.parts, ""
    shown = clause.parts[:_ALTERNATIVES] if clause.matters else ()
    left = len(clause.parts) - len(shown)
    return shown, f"... {left} more: --format json" if left else ""


def _clause(clause: Clause, depth: int, told: set[str], long: bool) -> Iterator[RenderableType]:
    """Yield a clause and its parts; ``told`` are the tests whose settings have been printed."""
    need = clause.need
    if need is None:
        yield indent(Text(f"{_JOINED[clause.joined]}{_came_to(clause)}"), depth)
    else:
        text = need.term.text
        text = text if need.wanted else f"not {_bracketed(text)}"
        yield indent(Text(f"{place(need.term.span)}: {text}{_came_to(clause)}"), depth)
        if clause.matters and need.term.text not in told:
            told.add(need.term.text)
            for fact in need.term.settings[:_SHOWN_SETTINGS]:
                yield indent(Text(setting(fact), style="dim"), depth + 4)
    parts, left = _parts(clause, long)
    for part in parts:
        yield from _clause(part, depth + 2, told, long)
    if left:
        yield indent(Text(left, style="dim"), depth + 2)


def _bracketed(text: str) -> str:
    return f"({text})" if " " in text else text


def _came_to(clause: Clause) -> str:
    if not clause.matters:
        return " -- does not matter"
    if clause.need is None:
        return {True: " -- holds", False: " -- does not hold", None: ""}[clause.holds]
    term = clause.need.term
    if clause.holds is None:
        reasons = f", needs {', '.join(term.reasons)}" if term.reasons else ""
        return f" -- not known{reasons}" if reasons or term.source is TermSource.SIZE else ""
    told = "holds" if clause.holds else "does not hold"
    if term.source is TermSource.ASSUMED:
        told = "assumed to hold" if clause.holds else "assumed not to hold"
    return f" -- {told}{f': {term.note}' if term.note else ''}"


def setting(fact: Fact) -> str:
    """Say a setting, its value, and where that comes from."""
    value = repr(fact.value) if fact.known else f"one of {fact.alternatives or 'any value'}"
    value = value if len(value) <= _LONGEST_VALUE else f"{value[:_LONGEST_VALUE]}..."
    origins = "; ".join(_origin(origin) for origin in fact.origins[:2])
    return f"{fact.name} = {value}{f', {origins}' if origins else ''}"


def _origin(origin: FactOrigin) -> str:
    if origin.kind is not OriginKind.ASSIGNED or origin.span is None:
        return "given" if origin.kind is OriginKind.GIVEN else "default"
    test = f" because {origin.tests[-1].text} is {origin.tests[-1].outcome}" if origin.tests else ""
    return f"set at {place(origin.span)}{test}"


def _alternative(alternative: Alternative) -> Text:
    changes = " and ".join(_change(change) for change in alternative.changes)
    link = " " if changes.startswith("without ") else " with "
    return Text.assemble(word(alternative.verdict.value), f"{link}{changes}")


def _change(change: SettingChange) -> str:
    if change.argument:
        return f"{change.argument} (now {change.old!r})"
    if change.removed:
        return f"{change.name} not given (now {change.old!r})"
    return f"{change.name} = {change.new!r} (now {change.old!r})"
