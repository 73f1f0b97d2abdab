"""What a launch command makes of the settings, the sizes and the start of a server."""

from __future__ import annotations

from specmap.codemap.launch import Fact, FactOrigin, OriginKind, Plain, Refusal
from specmap.codemap.outcome import Captured, Outcome
from specmap.report.page.secrets import shown
from specmap.report.page.tables import Json, Tables
from specmap.trace.rundir import without_secrets

_LONGEST = 400


def launch(outcome: Outcome | None, tables: Tables) -> Json | None:
    """Return the launch of a side; None without one."""
    if outcome is None:
        return None
    refusal = outcome.refusal
    return {
        "command": without_secrets(outcome.command),
        "batchSize": outcome.batch_size,
        "refusal": None if refusal is None else _refusal(refusal, tables),
        "mayRefuse": [_refusal(refusal, tables) for refusal in outcome.may_refuse],
        "concerns": [
            {
                "kind": concern.kind,
                "message": concern.message,
                "place": tables.place(concern.span),
                "failing": concern.failing,
            }
            for concern in outcome.concerns
        ],
        "expectations": [
            {
                "phase": e.phase.value,
                "expected": e.expected.value,
                "found": e.found.value,
                "met": e.met,
            }
            for e in outcome.expectations
        ],
        "assumptions": [
            {"key": a.key, "text": a.text, "option": a.option} for a in outcome.assumptions
        ],
        "missing": list(outcome.missing),
        "notes": list(outcome.notes),
        "settings": [setting(fact, tables) for fact in outcome.settings],
        "captured": captured(outcome.captured),
    }


def captured(known: Captured) -> Json:
    """Return the captured sizes and the admitted requests."""
    return {
        "sizes": None if known.sizes is None else list(known.sizes),
        "least": list(known.least),
        "reasons": list(known.reasons),
        "admitted": list(known.admitted),
        "tokensPerRequest": known.tokens_per_request,
        "concurrency": known.concurrency,
        "steady": known.steady,
        "share": known.share,
        "assumed": known.assumed,
    }


def setting(fact: Fact, tables: Tables) -> Json:
    """Return one setting with where it got its value."""
    return {
        "name": fact.name,
        "value": shown(fact.name, text_of(fact.value)) if fact.known else "",
        "known": fact.known,
        "origins": [
            {"text": _origin(origin), "place": tables.place(origin.span)} for origin in fact.origins
        ],
    }


def _origin(origin: FactOrigin) -> str:
    if origin.kind is OriginKind.GIVEN:
        return "as given"
    if origin.kind is OriginKind.DEFAULT:
        return "default"
    tests = [t for t in origin.tests if t.outcome != "unknown"]
    if not tests:
        return "set"
    last = tests[-1]
    return f"set because {last.text if last.outcome == 'true' else f'not ({last.text})'}"


def _refusal(refusal: Refusal, tables: Tables) -> Json:
    return {
        "error": refusal.error,
        "message": refusal.message,
        "place": tables.place(refusal.span),
        "tests": [
            {"text": t.text, "place": tables.place(t.span), "outcome": t.outcome}
            for t in refusal.tests
        ],
        "reasons": list(refusal.reasons),
    }


def text_of(value: Plain) -> str:
    """Return a value as text for people, cut where it is long."""
    text = value if isinstance(value, str) else repr(_listed(value))
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}\N{HORIZONTAL ELLIPSIS}"


def _listed(value: Plain) -> object:
    return list(value) if isinstance(value, tuple) else value
