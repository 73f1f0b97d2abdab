"""The call graph as a Mermaid flowchart: the picture of ``dot.py`` for where no dot is."""

from __future__ import annotations

from collections.abc import Sequence

from specmap.codemap.graph import CodeMap
from specmap.report.callgraph import Link, LinkKind, Node, NodeKind, View, build
from specmap.report.options import RenderOptions
from specmap.report.palette import FAINT, INK, PHASES, VERDICTS
from specmap.report.select import narrow

_SHAPES = {
    NodeKind.FUNCTION: ("[", "]"),
    NodeKind.PHASE: ("([", "])"),
    NodeKind.DECISION: ("{{", "}}"),
    NodeKind.SINK: ("[(", ")]"),
    NodeKind.LEAVES: ("[", "]"),
}
_ARROWS = {
    LinkKind.CALL: "-->",
    LinkKind.ASKS: "-.->",
    LinkKind.BOUNDARY: "-.->",
    LinkKind.UNRESOLVED: "-.->",
}
# What Mermaid would read as markup inside a quoted label.
_ENTITIES = {ord(mark): f"#{ord(mark)};" for mark in '"#&<>`'}


def render(codemap: CodeMap, options: RenderOptions) -> str:
    """Return the narrowed call graph as a Mermaid flowchart."""
    view = build(narrow(codemap, options.workers, options.phases))
    return "\n".join(_lines(view)) + "\n"


def _lines(view: View) -> list[str]:
    names = {name: f"n{index}" for index, (name, _) in enumerate(view.nodes())}
    lines = ["---", f"title: {_title(view.title)}", "---"]
    lines.append("flowchart LR" if view.summary else "flowchart TB")
    for index, (cluster, title) in enumerate(view.clusters.items()):
        lines.append(f"  subgraph c{index}[{_label(title)}]")
        lines += [
            f"    {_node(names[name], node)}"
            for name, node in view.nodes()
            if node.cluster == cluster
        ]
        lines.append("  end")
    lines += [f"  {_node(names[name], node)}" for name, node in view.nodes() if not node.cluster]
    for source, target, link in view.links():
        text = f"|{_label(_link_label(link))}|" if _link_label(link) else ""
        lines.append(f"  {names[source]} {_ARROWS[link.kind]}{text} {names[target]}")
    return [*lines, *_legend(view), *_styles(view)]


def _node(name: str, node: Node) -> str:
    left, right = _SHAPES[node.kind]
    return f"{name}{left}{_label(node.lines)}{right}{_class(node)}"


def _class(node: Node) -> str:
    if node.verdict:
        return f":::{node.verdict}"
    if node.kind in (NodeKind.DECISION, NodeKind.LEAVES):
        return f":::{node.kind.value}"
    return ""


def _link_label(link: Link) -> tuple[str, ...]:
    """Return the labels, and the phases where one colour cannot say them."""
    shared = len(link.phases) > 1 and link.kind is LinkKind.CALL
    return (*link.labels, ", ".join(link.phases)) if shared else link.labels


def _label(lines: Sequence[str]) -> str:
    return f'"{"<br/>".join(line.translate(_ENTITIES) for line in lines)}"'


def _title(text: str) -> str:
    """Quote for the YAML that the title stands in."""
    return "'" + text.replace("'", "''") + "'"


def _legend(view: View) -> list[str]:
    used = {node.verdict for _, node in view.nodes() if node.verdict}
    marks = [f"    legend{i}[{word}]:::{word}" for i, word in enumerate(VERDICTS) if word in used]
    return ["  subgraph legend", *marks, "  end"] if marks else []


def _styles(view: View) -> list[str]:
    lines = [
        f"  classDef {word} fill:{fill},stroke:{border},color:#102027"
        for word, (fill, border) in VERDICTS.items()
    ]
    lines.append("  classDef decision fill:#f3e5f5,stroke:#7e57c2,color:#102027")
    lines.append(f"  classDef leaves fill:#ffffff,stroke:{FAINT},color:{INK},stroke-dasharray:4")
    for index, (_, _, link) in enumerate(view.links()):
        if link.kind in (LinkKind.BOUNDARY, LinkKind.UNRESOLVED):
            lines.append(f"  linkStyle {index} stroke:{FAINT}")
        elif link.kind is LinkKind.CALL and len(link.phases) == 1:
            lines.append(f"  linkStyle {index} stroke:{PHASES[link.phases[0]]},stroke-width:2px")
    return lines
