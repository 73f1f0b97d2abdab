"""The picture that DOT and Mermaid both draw: which nodes and links, not how they look.

For one worker: the functions on the chains from its entry to its sinks, with the decisions
on the way. For several: their phases and sinks only, or nobody could read it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import pairwise

import networkx as nx

from specmap.codemap.condition import atoms_of, render
from specmap.codemap.graph import CallEdge, CodeMap, Decision, EdgeStatus, Phase, Sink, Worker
from specmap.codemap.source import file_of, qualname_of
from specmap.codemap.verdict import PhaseName
from specmap.report.select import chain_symbols, class_of, entry_symbol
from specmap.report.wording import Places, guard_text, verdict_word

_LABEL = 48
_TERMS = 8
_LEAVING = 3


class NodeKind(StrEnum):
    """What a node stands for."""

    FUNCTION = "function"
    PHASE = "phase"
    DECISION = "decision"
    SINK = "sink"
    LEAVES = "leaves"


class LinkKind(StrEnum):
    """What a link stands for; ``asks`` leads to a decision."""

    CALL = "call"
    ASKS = "asks"
    BOUNDARY = "boundary"
    UNRESOLVED = "unresolved"


@dataclass(frozen=True, slots=True)
class Node:
    """One node; ``verdict`` is a verdict word, on phases and sinks; ``full`` hides nothing."""

    kind: NodeKind
    lines: tuple[str, ...]
    cluster: str = ""
    verdict: str = ""
    full: str = ""


@dataclass(frozen=True, slots=True)
class Link:
    """One link; ``labels`` are short, ``full`` says the same uncut."""

    kind: LinkKind
    labels: tuple[str, ...] = ()
    full: tuple[str, ...] = ()
    phases: tuple[PhaseName, ...] = ()


@dataclass(frozen=True, slots=True)
class View:
    """Nodes carry a :class:`Node` as ``node``, edges a :class:`Link` as ``link``.

    ``summary`` says that only phases and sinks are drawn; ``clusters`` maps a class id to
    the lines of its title, in drawing order.
    """

    title: str
    summary: bool
    graph: nx.DiGraph[str]
    clusters: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def nodes(self) -> list[tuple[str, Node]]:
        """Return ids and nodes, in the order in which they were met."""
        return [(name, data["node"]) for name, data in self.graph.nodes(data=True)]

    def links(self) -> list[tuple[str, str, Link]]:
        """Return source, target and link, in the order in which they were met."""
        return [(a, b, data["link"]) for a, b, data in self.graph.edges(data=True)]


def build(codemap: CodeMap) -> View:
    """Return the view of a map that is already narrowed."""
    places = Places.of(codemap)
    view = View(_title(codemap), len(codemap.workers) != 1, nx.DiGraph())
    if not view.summary:
        _draw_worker(view, codemap.workers[0], codemap)
    else:
        for worker in codemap.workers:
            _draw_summary(view, worker, codemap)
    files = {record.id: record.span for record in codemap.classes}
    for name in dict.fromkeys(node.cluster for _, node in view.nodes() if node.cluster):
        place = places.show(files[name]) if name in files else places.file(file_of(name) or name)
        view.clusters[name] = (qualname_of(name), place)
    return view


def short(text: str, limit: int = _LABEL) -> str:
    """Return text cut to ``limit`` characters, with an ellipsis where it was cut."""
    flat = " ".join(text.split())
    return flat if len(flat) <= limit else f"{flat[: limit - 1].rstrip()}\N{HORIZONTAL ELLIPSIS}"


def _title(codemap: CodeMap) -> str:
    names = ", ".join(worker.name for worker in codemap.workers)
    return f"{codemap.target}: {names}" if len(codemap.workers) == 1 else codemap.target


def _draw_worker(view: View, worker: Worker, codemap: CodeMap) -> None:
    entry = entry_symbol(worker)
    lines = {function.id: function.span.line for function in codemap.functions}
    calls = _calls(codemap)
    sinks = {sink.id: sink for sink in codemap.sinks}
    if entry is not None:
        for edge in codemap.edges:
            if entry in edge.callees:
                _add_function(view, edge.caller, lines)
                _add_function(view, entry, lines)
                _link(view, edge.caller, entry, _call(edge, edge.span.line, ()))
    for index, phase in enumerate(worker.phases):
        _draw_phase(view, f"phase:{index}", worker, phase, calls, sinks, lines)
    chains = chain_symbols(worker.phases)
    on: dict[str, list[str]] = defaultdict(list)
    for index, phase in enumerate(worker.phases):
        for decision_id in phase.decisions:
            on[decision_id].append(f"phase:{index}")
    classes = {class_of(symbol) for symbol in chains}
    elsewhere: dict[tuple[str, ...], list[Decision]] = defaultdict(list)
    for decision in codemap.decisions:
        near = _near(decision, chains, codemap) or on[decision.id]
        if decision.holder in chains or class_of(decision.holder) in classes:
            _draw_decision(view, decision, near)
        else:
            elsewhere[tuple(dict.fromkeys(near))].append(decision)
    for sources, decisions in elsewhere.items():
        if len(decisions) == 1:
            _draw_decision(view, decisions[0], sources)
        else:
            _draw_elsewhere(view, decisions, sources)
    leaving: dict[str, list[CallEdge]] = defaultdict(list)
    for edge in codemap.edges:
        if edge.caller in chains:
            leaving[edge.caller].append(edge)
    for caller, edges in leaving.items():
        _draw_leaving(view, caller, edges)


def _draw_phase(
    view: View,
    name: str,
    worker: Worker,
    phase: Phase,
    calls: dict[tuple[str, str], list[CallEdge]],
    sinks: dict[str, Sink],
    lines: dict[str, int],
) -> None:
    """Draw a phase between the entry and the first call after it, then its chains."""
    view.graph.add_node(name, node=_phase_node(phase, worker))
    for arm in phase.arms:
        for symbol, _ in arm.chain:
            _add_function(view, symbol, lines)
        _add_sink(view, sinks[arm.sink])
        _link(view, arm.chain[0][0], name, Link(LinkKind.CALL, phases=(phase.name,)))
        for hop, ((caller, line), (callee, _)) in enumerate(pairwise(arm.chain)):
            edge = _site(calls.get((caller, callee), []), line)
            link = _call(edge, line, (phase.name,))
            _link(view, caller if hop else name, callee, link)
        last = name if len(arm.chain) == 1 else arm.chain[-1][0]
        end = f"{arm.kind.value} when {render(arm.condition)}"
        link = Link(LinkKind.CALL, (f":{arm.chain[-1][1]}",), (end,), (phase.name,))
        _link(view, last, f"sink:{arm.sink}", link)


def _draw_summary(view: View, worker: Worker, codemap: CodeMap) -> None:
    """Draw phases and sinks of one worker among several."""
    sinks = {sink.id: sink for sink in codemap.sinks}
    for index, phase in enumerate(worker.phases):
        name = f"phase:{worker.id}:{index}"
        view.graph.add_node(name, node=_phase_node(phase, worker))
        for arm in phase.arms:
            _add_sink(view, sinks[arm.sink])
            condition = render(arm.condition)
            link = Link(LinkKind.CALL, (), (f"when {condition}",), (phase.name,))
            _link(view, name, f"sink:{arm.sink}", link)


def _phase_node(phase: Phase, worker: Worker) -> Node:
    modes = " ".join(phase.forward_modes) or "no forward"
    word = verdict_word(phase)
    terms = len(set(atoms_of(phase.graph_when)))
    if phase.verdict is None and terms:
        word_line = f"GRAPH under {terms} term{'s' if terms > 1 else ''}"
    elif phase.verdict is None:
        word_line = " or ".join(dict.fromkeys(arm.kind.value for arm in phase.arms))
    else:
        word_line = word
    lines = (phase.name.value, f"{phase.role} \N{MIDDLE DOT} {modes}", word_line)
    full = f"graph replay when {render(phase.graph_when)}"
    return Node(NodeKind.PHASE, lines, worker.id, word, full)


def _add_function(view: View, symbol: str, lines: dict[str, int]) -> None:
    if symbol not in view.graph:
        name = qualname_of(symbol)
        line = f":{lines[symbol]}" if symbol in lines else ""
        label = (f"{name.rpartition('.')[2]} {line}".rstrip(),)
        node = Node(NodeKind.FUNCTION, label, class_of(symbol), full=symbol)
        view.graph.add_node(symbol, node=node)


def _add_sink(view: View, sink: Sink) -> None:
    kind = sink.kind.value.upper()
    lines = (kind, short(sink.text, 40), f"line {sink.span.line}")
    node = Node(NodeKind.SINK, lines, class_of(sink.holder), kind, f"{sink.text} at {sink.span}")
    view.graph.add_node(f"sink:{sink.id}", node=node)


def _near(decision: Decision, chains: set[str], codemap: CodeMap) -> list[str]:
    """Find where on the chains a decision belongs: its holder, what calls that, its class."""
    if decision.holder in chains:
        return [decision.holder]
    callers = [e.caller for e in codemap.edges if decision.holder in e.callees]
    owner = class_of(decision.holder)
    siblings = [symbol for symbol in sorted(chains) if class_of(symbol) == owner]
    return [symbol for symbol in callers if symbol in chains] or siblings[:1]


def _draw_decision(view: View, decision: Decision, sources: Sequence[str]) -> None:
    """Hang a decision on the functions that hold or call it, or else on its phases."""
    name = f"decision:{decision.id}"
    what = f"{qualname_of(decision.holder).rpartition('.')[2]} :{decision.span.line}"
    # Of a test and its own parts the parts say more.
    whole = {term.conjunct_of for term in decision.terms}
    terms = [term for term in decision.terms if term.text not in whole]
    bullets = [
        f"\N{BULLET} {short(t.text if t.graph_when else f'not ({t.text})', 46)}"
        for t in terms[:_TERMS]
    ]
    if len(terms) > _TERMS:
        bullets.append(f"\N{BULLET} and {len(terms) - _TERMS} more")
    full = decision.text
    node = Node(NodeKind.DECISION, (what, *bullets), class_of(decision.holder), full=full)
    view.graph.add_node(name, node=node)
    for source in dict.fromkeys(sources):
        _link(view, source, name, Link(LinkKind.ASKS, phases=decision.phases))


def _draw_elsewhere(view: View, decisions: Sequence[Decision], sources: Sequence[str]) -> None:
    """Draw decisions of classes without a pass of this worker as one node, by name only."""
    name = "decision:" + " ".join(decision.id for decision in decisions)
    places = [f"{qualname_of(d.holder)} :{d.span.line}" for d in decisions]
    lines = (f"{len(decisions)} decisions elsewhere", *(f"\N{BULLET} {p}" for p in places))
    full = "\n".join(f"{p}: {d.text}" for p, d in zip(places, decisions, strict=True))
    view.graph.add_node(name, node=Node(NodeKind.DECISION, lines, full=full))
    for source in sources:
        _link(view, source, name, Link(LinkKind.ASKS))


def _draw_leaving(view: View, caller: str, edges: Sequence[CallEdge]) -> None:
    """Draw the calls of a function that nobody could resolve, or that are not followed."""
    for kind, status, title in (
        (LinkKind.UNRESOLVED, EdgeStatus.UNRESOLVED, "unresolved"),
        (LinkKind.BOUNDARY, EdgeStatus.BOUNDARY, "not followed"),
    ):
        found = [edge for edge in edges if edge.status is status]
        if not found:
            continue
        calls = list(dict.fromkeys(f":{e.span.line} {short(e.text, 34)}" for e in found))
        lines = [f"{title}:", *calls[:_LEAVING]]
        if kind is LinkKind.BOUNDARY and len(calls) > 1:
            lines = [f"{len(calls)} calls not followed"]
        elif len(calls) > _LEAVING:
            lines.append(f"and {len(calls) - _LEAVING} more")
        full = "\n".join(f":{e.span.line} {e.text}: {e.reason or title}" for e in found)
        name = f"{title}:{caller}"
        node = Node(NodeKind.LEAVES, tuple(lines), class_of(caller), full=full)
        view.graph.add_node(name, node=node)
        _link(view, caller, name, Link(kind))


def _calls(codemap: CodeMap) -> dict[tuple[str, str], list[CallEdge]]:
    found: dict[tuple[str, str], list[CallEdge]] = {}
    for edge in codemap.edges:
        for callee in edge.callees:
            found.setdefault((edge.caller, callee), []).append(edge)
    return found


def _site(edges: Sequence[CallEdge], line: int) -> CallEdge | None:
    return next((e for e in edges if e.span.line <= line <= e.span.end_line), None)


def _call(edge: CallEdge | None, line: int, phases: tuple[PhaseName, ...]) -> Link:
    """Describe a call by its line and the innermost of its guards; ``full`` has them all."""
    if edge is None or not edge.guards:
        return Link(LinkKind.CALL, (f":{line}",), (f"line {line}",), phases)
    tests = [guard_text(guard) for guard in edge.guards]
    more = f" (+{len(tests) - 1})" if len(tests) > 1 else ""
    label = f":{line} if {short(tests[-1])}{more}"
    full = f"line {line} if {' and if '.join(tests)}"
    return Link(LinkKind.CALL, (label,), (full,), phases)


def _link(view: View, source: str, target: str, link: Link) -> None:
    """Add a link; a second one between the same nodes adds its labels and phases."""
    if view.graph.has_edge(source, target):
        old: Link = view.graph.edges[source, target]["link"]
        link = replace(
            old,
            labels=_merged(old.labels, link.labels),
            full=_merged(old.full, link.full),
            phases=tuple(p for p in PhaseName if p in old.phases or p in link.phases),
        )
    view.graph.add_edge(source, target, link=link)


def _merged(old: tuple[str, ...], new: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*old, *new)))
