"""What several detectors ask of a map."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from specmap.codemap.graph import CodeMap, Decision, Guard, Phase, Worker
from specmap.codemap.source import Span, qualname_of
from specmap.codemap.verdict import PhaseName

DECODE_PHASES = (PhaseName.DRAFT, PhaseName.VERIFY, PhaseName.DRAFT_EXTEND)
"""The phases of a decode cycle."""


def place(span: Span) -> str:
    """Return ``eagle_worker.py:308``, as a message names a place."""
    return f"{span.file.rpartition('/')[2]}:{span.line}"


def clip(text: str, width: int = 80) -> str:
    """Return source text that fits into a message."""
    return text if len(text) <= width else f"{text[: width - 3]}..."


def names(symbols: Iterable[str]) -> str:
    """Return the last names of symbol ids, as a message lists them."""
    return ", ".join(sorted({qualname_of(symbol).rpartition(".")[2] for symbol in symbols}))


def phases_named(text: str) -> tuple[PhaseName, ...]:
    """Return the phases that a text such as ``verify->draft_extend`` names."""
    return tuple(phase for phase in PhaseName if phase in text.split("->"))


def phases_of(codemap: CodeMap) -> Iterator[tuple[Worker, Phase]]:
    """Yield the decode phases of every worker that run."""
    for worker in codemap.workers:
        for phase in worker.phases:
            if phase.name in DECODE_PHASES and phase.arms:
                yield worker, phase


def routes(codemap: CodeMap) -> list[Decision]:
    """Return the decisions that pick a runner or the eager path."""
    return [decision for decision in codemap.decisions if decision.kind == "route"]


def own_guards(guards: tuple[Guard, ...], holder: str) -> list[Guard]:
    """Return the tests of one function that enclose a place in it."""
    return [guard for guard in guards if guard.holder == holder and guard.encloses]


def strings(parameters: Mapping[str, object], name: str) -> tuple[str, ...]:
    """Return a parameter that is a list of strings."""
    value = parameters[name]
    return tuple(str(item) for item in value) if isinstance(value, list | tuple) else ()
