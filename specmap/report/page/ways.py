"""Where a phase that has no way to a graph turns to the eager forward."""

from __future__ import annotations

from itertools import pairwise

from specmap.codemap.graph import Arm, Phase
from specmap.codemap.source import Span, file_of, qualname_of
from specmap.codemap.verdict import SinkKind
from specmap.report.select import class_of


def eager_ways(phase: Phase) -> list[tuple[str, Span]]:
    """Return the last call into another class on each way of a phase, and its place.

    That class runs the model; the places before and after it are the same for phases that replay.
    Nothing where the phase has a way to a graph, or no way at all.
    """
    if any(arm.kind is not SinkKind.EAGER for arm in phase.arms):
        return []
    return list(dict.fromkeys(_turn(arm) for arm in phase.arms))


def _turn(arm: Arm) -> tuple[str, Span]:
    for (caller, line), (callee, _) in reversed(list(pairwise(arm.chain))):
        if class_of(caller) != class_of(callee):
            return f"{qualname_of(caller)} calls {qualname_of(callee)}", _at(caller, line)
    caller, line = arm.chain[-1]
    return f"{qualname_of(caller)} runs the model itself", _at(caller, line)


def _at(symbol: str, line: int) -> Span:
    return Span(file_of(symbol), line, line)
