"""Rules, matches and detectors for tests of the engine; none is about SGLang."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from specmap.codemap.finding import Match
from specmap.codemap.graph import CodeMap
from specmap.codemap.rule import Confidence, Needs, Rule, Severity, takes
from specmap.codemap.source import Span, symbol_id
from specmap.codemap.verdict import PhaseName

FILE = "sglang/srt/speculative/eagle_worker.py"


def rule(id: str = "SPM901", name: str = "long-method", detector: str = "methods") -> Rule:
    return Rule(
        id=id,
        name=name,
        summary="A method is long",
        topic="samples",
        severity=Severity.WARNING,
        confidence=Confidence.HIGH,
        needs=Needs.STATIC,
        detector=f"tests.lint.samples:{detector}",
    )


def match(
    anchor: str = "x.item()", line: int = 3, holder: str = "EAGLEWorker.verify", file: str = FILE
) -> Match:
    return Match(
        span=Span(file, line, line),
        holder=symbol_id(file, holder),
        anchor=anchor,
        message=f"{anchor} waits",
        phases=(PhaseName.VERIFY,),
    )


FOUND: list[Match] = []


def methods(codemap: CodeMap, parameters: Mapping[str, object]) -> Iterator[Match]:
    """Find what the test put into FOUND."""
    yield from FOUND


def broken(codemap: CodeMap, parameters: Mapping[str, object]) -> Iterator[Match]:
    """Find one match, then fail."""
    yield match()
    raise ZeroDivisionError("division by zero")


@takes(words=list, limit=int)
def choosy(codemap: CodeMap, parameters: Mapping[str, object]) -> Iterator[Match]:
    """Say what it was given."""
    yield replace(match(), message=f"{parameters['words']} {parameters['limit']}")
