"""The call graph as Graphviz DOT, and drawn by the ``dot`` program as SVG or PNG."""

from __future__ import annotations

import re
from collections.abc import Sequence

import graphviz

from specmap.codemap.graph import CodeMap
from specmap.codemap.source import qualname_of
from specmap.codemap.verdict import PhaseName
from specmap.errors import OutputError
from specmap.report.callgraph import Link, LinkKind, Node, NodeKind, View, build
from specmap.report.options import RenderOptions
from specmap.report.palette import FAINT, INK, PAPER, PHASES, VERDICTS
from specmap.report.select import narrow

_FONT = "Helvetica,Arial,sans-serif"
_GRAPH = {
    "fontname": _FONT,
    "fontsize": "18",
    "fontcolor": INK,
    "labelloc": "t",
    "nodesep": "0.18",
    "ranksep": "0.45",
    "splines": "spline",
    "newrank": "true",
    "bgcolor": "white",
}
_NODE = {
    "fontname": _FONT,
    "fontsize": "11",
    "fontcolor": "#102027",
    "shape": "box",
    "style": "rounded,filled",
    "fillcolor": "white",
    "color": FAINT,
    "margin": "0.12,0.06",
    "height": "0.3",
}
_EDGE = {"fontname": _FONT, "fontsize": "9", "fontcolor": INK, "color": INK, "arrowsize": "0.7"}
_LINKS = {
    LinkKind.CALL: {"penwidth": "1.6"},
    LinkKind.ASKS: {"style": "dashed", "arrowhead": "odiamond", "color": INK},
    LinkKind.BOUNDARY: {"style": "dotted", "color": FAINT, "fontcolor": FAINT},
    LinkKind.UNRESOLVED: {"style": "dashed", "color": FAINT, "fontcolor": FAINT},
}
_MEANINGS = {
    LinkKind.ASKS: "&#9476;&#9476; asks a decision (violet)",
    LinkKind.BOUNDARY: "&#183;&#183;&#183; known, not followed",
    LinkKind.UNRESOLVED: "&#9476;&#9476; grey: unresolved",
}
_WRAP = 26
_TOOLTIP = 1500


class DotMissing(OutputError):  # noqa: N818
    """Graphviz's ``dot`` program is not installed."""


def render(codemap: CodeMap, options: RenderOptions) -> str:
    """Return the narrowed call graph as DOT text."""
    return draw(build(narrow(codemap, options.workers, options.phases)))


def draw(view: View) -> str:
    """Return a view as DOT text."""
    source: str = _document(view).source
    return source


def draw_svg(view: View) -> bytes:
    """Return the drawing of a view as SVG.

    Raises:
        DotMissing: the ``dot`` program is not installed.
    """
    return _draw(draw(view), "svg")


def render_svg(codemap: CodeMap, options: RenderOptions) -> bytes:
    """Return the drawing as SVG.

    Raises:
        DotMissing: the ``dot`` program is not installed.
    """
    return _draw(render(codemap, options), "svg")


def render_png(codemap: CodeMap, options: RenderOptions) -> bytes:
    """Return the drawing as PNG.

    Raises:
        DotMissing: the ``dot`` program is not installed.
    """
    return _draw(render(codemap, options), "png")


def _draw(source: str, kind: str) -> bytes:
    try:
        drawing: bytes = graphviz.Source(source).pipe(format=kind, quiet=True)
    except graphviz.ExecutableNotFound:
        raise DotMissing(
            f"cannot draw {kind}: Graphviz's 'dot' program is not installed; install the system "
            "package 'graphviz', or use --format dot or mermaid"
        ) from None
    except (graphviz.CalledProcessError, OSError) as error:
        raise OutputError(
            f"cannot draw {kind}: 'dot' failed ({str(error).splitlines()[0]}); "
            "use --format dot and draw it with another Graphviz"
        ) from None
    return drawing


def _document(view: View) -> graphviz.Digraph:
    document = graphviz.Digraph(
        "specmap", graph_attr=_GRAPH, node_attr=_NODE, edge_attr=_EDGE, strict=False
    )
    document.attr(
        label=_label([view.title]),
        tooltip=_label([view.title]),
        rankdir="LR" if view.summary else "TB",
    )
    names = {name: f"n{index}" for index, (name, _) in enumerate(view.nodes())}
    for index, (cluster, title) in enumerate(view.clusters.items()):
        with document.subgraph(name=f"cluster_{index}") as box:
            box.attr(
                label=_label(title, end=r"\l"),
                style="rounded,filled",
                fillcolor=PAPER,
                color=FAINT,
                fontsize="12",
                tooltip=_label([qualname_of(cluster)]),
                labeljust="l",
            )
            for name, node in view.nodes():
                if node.cluster == cluster:
                    _add_node(box, names[name], node)
    for name, node in view.nodes():
        if not node.cluster:
            _add_node(document, names[name], node)
    for source, target, link in view.links():
        document.edge(names[source], names[target], **_link_style(link))
    _legend(document, view)
    return document


def _add_node(box: graphviz.Digraph, name: str, node: Node) -> None:
    style = {"label": _label(node.lines), "tooltip": _tooltip(node.full or " ".join(node.lines))}
    if node.verdict:
        style["fillcolor"], style["color"] = VERDICTS[node.verdict]
        style["penwidth"] = "1.8"
    if node.kind is NodeKind.SINK:
        style["shape"] = "cylinder"
    elif node.kind is NodeKind.DECISION:
        style |= {
            "label": _label(node.lines, end=r"\l"),
            "shape": "box",
            "style": "filled",
            "fillcolor": "#f3e5f5",
            "color": "#7e57c2",
            "fontsize": "9",
            "margin": "0.05,0.03",
        }
    elif node.kind is NodeKind.LEAVES:
        style |= {"style": "dashed", "color": FAINT, "fontcolor": FAINT, "fontsize": "9"}
        style["label"] = _label(node.lines, end=r"\l")
    box.node(name, **style)


def _link_style(link: Link) -> dict[str, str]:
    style = dict(_LINKS[link.kind])
    if link.labels:
        style["label"] = _label([line for text in link.labels for line in _wrapped(text)])
    if link.full:
        style["tooltip"] = style["labeltooltip"] = _tooltip("\n".join(link.full))
    if link.kind is LinkKind.CALL and link.phases:
        style["color"] = ":".join(PHASES[phase] for phase in link.phases)
    return style


def _label(lines: Sequence[str], end: str = r"\n") -> str:
    """Return lines as a label that Graphviz prints as they are; ``end`` aligns each."""
    text: str = graphviz.nohtml("".join(_plain(line) + end for line in lines).removesuffix(r"\n"))
    return text


def _tooltip(text: str) -> str:
    """Return text cut to what a person hovers over, and to what ``dot`` can read at all."""
    cut = text if len(text) <= _TOOLTIP else f"{text[:_TOOLTIP]}\N{HORIZONTAL ELLIPSIS}"
    return _label(cut.split("\n"))


def _wrapped(text: str) -> list[str]:
    """Break text into short lines, after a space or inside a dotted name."""
    lines = [""]
    for part in re.findall(r"[^ ._(]*[ ._(]*", text):
        if lines[-1] and len(lines[-1]) + len(part.rstrip()) > _WRAP:
            lines.append("")
        lines[-1] += part
    return [line.rstrip() for line in lines]


def _plain(line: str) -> str:
    return line.replace("\\", "\\\\")


def _legend(document: graphviz.Digraph, view: View) -> None:
    """Explain what is in the drawing: fills, the line of each phase, styles of lines."""
    verdicts = {node.verdict for _, node in view.nodes() if node.verdict}
    phases = {phase for _, _, link in view.links() for phase in link.phases}
    kinds = {link.kind for _, _, link in view.links()}
    cells = (
        [
            f'<td border="1" bgcolor="{fill}" color="{border}">{word}</td>'
            for word, (fill, border) in VERDICTS.items()
            if word in verdicts
        ],
        [
            f'<td><font color="{PHASES[phase]}">&#9473;&#9473; {phase.value}</font></td>'
            for phase in PhaseName
            if phase in phases
        ],
        [f"<td>{text}</td>" for kind, text in _MEANINGS.items() if kind in kinds],
    )
    rows = "".join(
        f'<tr><td><table border="0" cellborder="0"><tr>{"".join(row)}</tr></table></td></tr>'
        for row in cells
        if row
    )
    table = f'<table border="0" cellborder="0" cellspacing="0" cellpadding="0">{rows}</table>'
    with document.subgraph(name="cluster_legend") as box:
        box.attr(label="legend", style="rounded", color=FAINT, fontsize="12", labeljust="l")
        box.node("legend", f"<{table}>", shape="plaintext", style="", margin="0")
