"""Graphs and features that are given up without a word."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from specmap.codemap.finding import Match
from specmap.codemap.graph import CodeMap
from specmap.codemap.hazards import FallbackKind


def silent_capture_failure(codemap: CodeMap, parameters: Mapping[str, object]) -> Iterator[Match]:
    """An error of a capture is caught, and the server goes on without saying so."""
    for fallback in codemap.hazards.fallbacks:
        if fallback.kind is FallbackKind.CAUGHT and not fallback.raises and not fallback.says:
            yield Match(
                span=fallback.span,
                holder=fallback.holder,
                anchor=fallback.text,
                message=f"{fallback.text} swallows a failed capture: the phase runs eager and "
                "nothing says so",
            )


def silent_switch(codemap: CodeMap, parameters: Mapping[str, object]) -> Iterator[Match]:
    """A setting takes a graph or a feature away, and the log does not say so."""
    for fallback in codemap.hazards.fallbacks:
        if fallback.kind is not FallbackKind.DISABLED:
            continue
        if not (fallback.says or fallback.raises or fallback.restored):
            yield Match(
                span=fallback.span,
                holder=fallback.holder,
                anchor=fallback.text,
                message=f"{fallback.text} turns a feature off and no log line says so",
            )
