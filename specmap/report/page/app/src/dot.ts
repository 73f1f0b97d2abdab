// A cut of the call graph as DOT text. Nodes and labels carry sizes alone: the page draws their text itself.
import type { Cut } from "./cut.ts";
import type { Graph } from "./data.ts";

export interface Size {
  width: number;
  height: number;
}

/** How large the page draws things, in its own pixels (one point each). */
export interface Sizes {
  node: (node: number) => Size;
  title: (lines: readonly string[]) => Size;
  label: (lines: readonly string[]) => Size;
}

const INCH = 72;
const LONGEST = 30;
const MOST = 3;

export function dotOf(graph: Graph, cut: Cut, sizes: Sizes): string {
  const lines = [
    "digraph {",
    `graph [rankdir=${cut.overview ? "LR" : "TB"} nodesep=0.2 ranksep=${cut.overview ? 1.2 : 0.3} newrank=true splines=spline]`,
    'node [shape=box fixedsize=true label=""]',
    "edge [arrowsize=0.6]",
  ];
  const clusters = new Map<number, number[]>();
  for (const node of cut.nodes) {
    const cluster = cut.boxed ? graph.nodes[node]?.cluster ?? -1 : -1;
    clusters.set(cluster, [...(clusters.get(cluster) ?? []), node]);
  }
  const draw = (node: number) => {
    const { width, height } = sizes.node(node);
    return `n${node} [width=${(width / INCH).toFixed(3)} height=${(height / INCH).toFixed(3)}]`;
  };
  for (const [cluster, nodes] of clusters) {
    if (cluster < 0) lines.push(...nodes.map(draw));
    else {
      const title = room(sizes.title(graph.clusters[cluster]?.title ?? []));
      lines.push(`subgraph cluster_${cluster} {`, `graph [label=${title} labeljust=l margin=10]`);
      lines.push(...nodes.map(draw), "}");
    }
  }
  cut.edges.forEach((edge, index) => {
    const label = edge.labels.length ? ` label=${room(sizes.label(brief(edge.labels)))}` : "";
    lines.push(`n${edge.from} -> n${edge.to} [id="${index}"${label}]`);
  });
  lines.push("}");
  return lines.join("\n");
}

/** A label without text that takes as much room as the page needs. */
function room({ width, height }: Size): string {
  const size = `width="${Math.ceil(width)}" height="${Math.ceil(height)}"`;
  return `<<table border="0" cellborder="0" cellpadding="0" cellspacing="0" fixedsize="true" ${size}><tr><td></td></tr></table>>`;
}

/** Labels, each on a line of its own and cut where it is long; all of it is in the panel of a node. */
export function brief(labels: readonly string[], most = MOST): string[] {
  const lines = labels.map((label) => (label.length > LONGEST ? `${label.slice(0, LONGEST - 1).trimEnd()}…` : label));
  return lines.length > most ? [...lines.slice(0, most - 1), `${lines.length - most + 1} more`] : lines;
}
