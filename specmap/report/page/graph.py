"""The call graphs of all workers as one: which worker and phase each node and edge belongs to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from specmap.codemap.graph import CodeMap, Worker
from specmap.codemap.source import Span
from specmap.codemap.verdict import PhaseName
from specmap.report import callgraph
from specmap.report.callgraph import Link, LinkKind, Node, NodeKind, View
from specmap.report.page.tables import Json, Tables
from specmap.report.select import narrow

_PHASES = tuple(PhaseName)
_LONGEST = 1500
"""Characters of a condition that a node or edge repeats; the arms hold all of it."""


@dataclass
class Drawing:
    """The nodes and edges of a side; ``sinks`` numbers the nodes of sinks by their id."""

    nodes: list[Json] = field(default_factory=list)
    edges: list[Json] = field(default_factory=list)
    clusters: list[Json] = field(default_factory=list)
    sinks: dict[str, int] = field(default_factory=dict)

    def judge(self, workers: Sequence[Json]) -> None:
        """Give the phases that a launch settles its verdicts; the map's stay on the others."""
        for node in self.nodes:
            if node["phase"] is not None:
                worker, place = node["phase"]
                judged = workers[worker]["selection"] in ("runs", "may run")
                if judged:
                    node["verdict"] = workers[worker]["phases"][place]["verdict"]
                    node["lines"][-1] = node["verdict"]

    def data(self) -> Json:
        """Return the graph as the page has it."""
        return {"nodes": self.nodes, "edges": self.edges, "clusters": self.clusters}


def drawing(codemap: CodeMap, tables: Tables) -> Drawing:
    """Return the call graphs of all workers, drawn one over the other."""
    made = _Maker(codemap, tables)
    for index, worker in enumerate(codemap.workers):
        made.add(index, worker, callgraph.build(narrow(codemap, (worker.id,), ())))
    return made.drawing


class _Maker:
    def __init__(self, codemap: CodeMap, tables: Tables) -> None:
        self.drawing = Drawing()
        self._tables = tables
        self._functions = {f.id: f.span for f in codemap.functions}
        self._decisions = {f"decision:{d.id}": d for d in codemap.decisions}
        self._sinks = {f"sink:{s.id}": s for s in codemap.sinks}
        self._nodes: dict[str, int] = {}
        self._edges: dict[tuple[int, int], int] = {}
        self._clusters: dict[str, int] = {}

    def add(self, index: int, worker: Worker, view: View) -> None:
        """Draw one worker."""
        masks = _masks(view)
        for name, title in view.clusters.items():
            if name not in self._clusters:
                self._clusters[name] = len(self.drawing.clusters)
                self.drawing.clusters.append({"id": name, "title": list(title)})
        numbers = {
            name: self._node(name, node, index, worker, masks[name]) for name, node in view.nodes()
        }
        for source, target, link in view.links():
            mask = _mask(link)
            if link.kind is not LinkKind.CALL and not mask:
                mask = masks[source]
            self._edge(numbers[source], numbers[target], link, [index, mask])

    def _node(self, name: str, node: Node, index: int, worker: Worker, mask: int) -> int:
        phase: list[int] | None = None
        if node.kind is NodeKind.PHASE:
            place = int(name.rpartition(":")[2])
            phase = [index, place]
            mask = 1 << _PHASES.index(worker.phases[place].name)
            name = f"phase:{index}:{place}"
        known = self._nodes.get(name)
        if known is not None:
            self.drawing.nodes[known]["on"].append([index, mask])
            return known
        number = self._nodes[name] = len(self.drawing.nodes)
        if node.kind is NodeKind.SINK:
            self.drawing.sinks[name.removeprefix("sink:")] = number
        decision = self._decisions.get(name)
        self.drawing.nodes.append(
            {
                "id": name,
                "kind": node.kind.value,
                "lines": list(node.lines),
                "cluster": self._clusters.get(node.cluster, -1),
                "full": _cut(node.full),
                "place": self._tables.place(self._span(name, worker, phase)),
                "on": [[index, mask]],
                "verdict": node.verdict,
                "phase": phase,
                "symbol": self._symbol(name),
                "terms": [
                    {
                        "text": term.text,
                        "place": self._tables.place(term.span),
                        "graphWhen": term.graph_when,
                    }
                    for term in (decision.terms if decision is not None else ())
                ],
            }
        )
        return number

    def _span(self, name: str, worker: Worker, phase: list[int] | None) -> Span | None:
        if phase is not None:
            return worker.phases[phase[1]].span
        if name in self._decisions:
            return self._decisions[name].span
        if name in self._sinks:
            return self._sinks[name].span
        return self._functions.get(name)

    def _symbol(self, name: str) -> str:
        """Return the function whose calls a node counts."""
        if name in self._sinks:
            return self._sinks[name].holder
        return name if name in self._functions else ""

    def _edge(self, source: int, target: int, link: Link, on: list[int]) -> None:
        known = self._edges.get((source, target))
        if known is None:
            self._edges[source, target] = len(self.drawing.edges)
            self.drawing.edges.append(
                {
                    "from": source,
                    "to": target,
                    "kind": link.kind.value,
                    "labels": list(link.labels),
                    "full": [_cut(text) for text in link.full],
                    "on": [on],
                }
            )
            return
        edge = self.drawing.edges[known]
        edge["on"].append(on)
        for key, values in (("labels", link.labels), ("full", map(_cut, link.full))):
            edge[key] = list(dict.fromkeys((*edge[key], *values)))


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}\N{HORIZONTAL ELLIPSIS}"


def _mask(link: Link) -> int:
    return sum(1 << _PHASES.index(phase) for phase in link.phases)


def _masks(view: View) -> Mapping[str, int]:
    """Return the phases of each node: those of its calls, else of the nodes that lead to it."""
    found = {name: 0 for name, _ in view.nodes()}
    for source, target, link in view.links():
        found[source] |= _mask(link)
        found[target] |= _mask(link)
    for source, target, link in view.links():
        if link.kind is not LinkKind.CALL and not found[target]:
            found[target] = found[source]
    return found
