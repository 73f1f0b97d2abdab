"""The call graph with what a run did on it: counts, and colours by the observed state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from specmap.codemap.event import Run, State
from specmap.codemap.graph import CodeMap
from specmap.report.callgraph import Node, NodeKind, View, build
from specmap.report.dot import draw, draw_svg
from specmap.report.options import RenderOptions
from specmap.report.run_text import counts
from specmap.report.select import narrow
from specmap.report.wording import DEPENDS

NOT_EXERCISED = "not exercised"
_SEEN = {state: state.value for state in (State.GRAPH, State.PIECEWISE, State.EAGER)}


def render(codemap: CodeMap, run: Run, options: RenderOptions) -> str:
    """Return the call graph of the run's workers as DOT text, counts summed over ranks."""
    return draw(_view(codemap, run, options))


def render_svg(codemap: CodeMap, run: Run, options: RenderOptions) -> bytes:
    """Return the drawing as SVG.

    Raises:
        DotMissing: the ``dot`` program is not installed.
    """
    return draw_svg(_view(codemap, run, options))


def _view(codemap: CodeMap, run: Run, options: RenderOptions) -> View:
    ran = {phase.worker for rank in run.ranks for phase in rank.phases}
    known = tuple(worker.name for worker in codemap.workers if worker.name in ran)
    shown = narrow(codemap, options.workers or known, options.phases)
    view = build(shown)
    calls: Counter[str] = Counter()
    for rank in run.ranks:
        calls.update(rank.calls)
    sinks = {sink.id: sink.holder for sink in shown.sinks}
    phases = {
        (f"phase:{worker.id}:{index}" if view.summary else f"phase:{index}"): _states(
            run, worker.name, phase.name.value
        )
        for worker in shown.workers
        for index, phase in enumerate(worker.phases)
    }
    for name, node in view.nodes():
        if node.kind is NodeKind.PHASE:
            made = _phase(node, phases.get(name, {}))
        elif node.kind is NodeKind.SINK:
            made = _counted(node, calls.get(sinks.get(name.removeprefix("sink:"), ""), 0))
            made = made if len(made.lines) > len(node.lines) else replace(made, verdict="NOT_RUN")
        else:
            made = _counted(node, calls.get(name, 0))
        view.graph.nodes[name]["node"] = made
    return view


def _states(run: Run, worker: str, phase: str) -> Mapping[State, int]:
    found: Counter[State] = Counter()
    for seen in (p for rank in run.ranks for p in rank.phases):
        if (seen.worker, seen.phase) == (worker, phase):
            found.update(seen.counts)
    return {state: found[state] for state in State if found[state]}


def _phase(node: Node, seen: Mapping[State, int]) -> Node:
    """Colour a phase by how it ran; mixed states get the colour of what depends."""
    if not seen:
        return replace(node, lines=(*node.lines, NOT_EXERCISED), verdict="NOT_RUN")
    ran = [state for state in seen if state is not State.CAPTURE]
    word = _SEEN.get(ran[0], DEPENDS) if len(ran) == 1 else DEPENDS
    return replace(node, lines=(*node.lines[:2], counts(seen)), verdict=word)


def _counted(node: Node, calls: int) -> Node:
    return replace(node, lines=(*node.lines, f"{calls} calls")) if calls else node
