"""Why a phase ends as it does: its routes, and the tests of its graph."""

from __future__ import annotations

from collections.abc import Iterator

from specmap.codemap.condition import (
    Atom,
    Condition,
    Leaf,
    Not,
    any_of,
    render,
    size_of,
)
from specmap.codemap.explanation import Hop, Need, PhaseReason, Route
from specmap.codemap.graph import Arm, CallEdge, CodeMap, Phase, Worker
from specmap.codemap.outcome import Outcome, TermSource, TermValue
from specmap.codemap.source import Span, file_of
from specmap.codemap.verdict import SinkKind
from specmap.why.clauses import Valued, clauses


def not_valued(atom: Atom) -> TermValue:
    """Return a test without a value: no launch is known."""
    return TermValue(atom.text, atom.span, None, TermSource.UNKNOWN)


def phase_reason(
    codemap: CodeMap, worker: Worker, phase: Phase, valued: Valued = not_valued
) -> PhaseReason:
    """Return the routes of a phase and the tests of its graph; ``valued`` gives their values."""
    edges: dict[tuple[str, int], CallEdge] = {}
    for edge in codemap.edges:
        edges.setdefault((edge.caller, edge.span.line), edge)
    replays = _replays(phase)
    return PhaseReason(
        worker=worker.name,
        phase=phase.name,
        verdict=phase.verdict,
        routes=_routes(phase, edges),
        needs=_needs(replays, valued),
        selected_at=worker.selected_at,
        selected_when=render(worker.selected_when),
        note=phase.note,
        replays=clauses(replays, valued) if size_of(replays) else None,
    )


def not_run(codemap: CodeMap, worker: Worker, phase: Phase, outcome: Outcome) -> PhaseReason:
    """Return the answer for a worker that a launch does not run: who runs, and what to ask."""
    note = f"this launch does not run {worker.name}"
    if outcome.refusal is not None:
        note = f"{note}: the server refuses to start; specmap scan with this launch says why"
    elif outcome.workers:
        runs = " or ".join(other.name for other in outcome.workers)
        note = f"{note}, it {'runs' if outcome.worker is not None else 'may run'} {runs}"
        named = [o.name for o in outcome.workers if any(p.name is phase.name for p in o.phases)]
        asks = " or ".join(
            f"specmap why {codemap.target} {name}.{phase.name} with the same options"
            for name in named
        )
        note = f"{note}; ask: {asks}" if named else f"{note}, which has no phase {phase.name}"
    return PhaseReason(worker.name, phase.name, None, (), (), note=note)


def _routes(phase: Phase, edges: dict[tuple[str, int], CallEdge]) -> tuple[Route, ...]:
    routes = [Route(arm.kind, tuple(_hops(arm, edges))) for arm in phase.arms]
    return tuple(dict.fromkeys(routes))


def _hops(arm: Arm, edges: dict[tuple[str, int], CallEdge]) -> Iterator[Hop]:
    for symbol, line in arm.chain:
        edge = edges.get((symbol, line))
        span = edge.span if edge is not None else Span(file_of(symbol), line, line)
        yield Hop(symbol, span, edge.text if edge else "", edge.guards if edge else ())


def _replays(phase: Phase) -> Condition:
    replays = [arm.condition for arm in phase.arms if arm.kind is SinkKind.GRAPH]
    replays = replays or [arm.condition for arm in phase.arms if arm.kind is SinkKind.PIECEWISE]
    return any_of(*replays)


def _needs(replays: Condition, valued: Valued) -> tuple[Need, ...]:
    """Return the tests of the graph condition, in the order of the source that decides them."""
    wanted: dict[Atom, set[bool]] = {}
    for atom, value in _signed(replays, True):
        wanted.setdefault(atom, set()).add(value)
    return tuple(
        Need(valued(atom), next(iter(values)) if len(values) == 1 else None)
        for atom, values in wanted.items()
    )


def _signed(term: Condition, value: bool) -> Iterator[tuple[Atom, bool]]:
    if isinstance(term, Leaf):
        yield term.atom, value
    elif isinstance(term, Not):
        yield from _signed(term.term, not value)
    else:
        for inner in term.terms:
            yield from _signed(inner, value)
