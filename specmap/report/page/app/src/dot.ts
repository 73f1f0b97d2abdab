// A cut of the call graph as DOT text. Nodes carry sizes alone: the page draws their text itself.
import type { Cut } from "./cut.ts";
import type { Graph } from "./data.ts";

export interface Size {
  width: number;
  height: number;
}

const INCH = 72;
const WRAP = 30;

/** Return DOT; `size` says how large the page draws a node, in its own pixels (one point each). */
export function dotOf(graph: Graph, cut: Cut, size: (node: number) => Size): string {
  const lines = [
    "digraph {",
    `graph [rankdir=${cut.overview ? "LR" : "TB"} nodesep=0.2 ranksep=${cut.overview ? 1.2 : 0.42} newrank=true splines=spline]`,
    'node [shape=box fixedsize=true label=""]',
    'edge [fontname=Helvetica fontsize=10 arrowsize=0.6]',
  ];
  const clusters = new Map<number, number[]>();
  for (const node of cut.nodes) {
    const cluster = cut.overview ? -1 : graph.nodes[node]?.cluster ?? -1;
    clusters.set(cluster, [...(clusters.get(cluster) ?? []), node]);
  }
  const draw = (node: number) => {
    const { width, height } = size(node);
    return `n${node} [width=${(width / INCH).toFixed(3)} height=${(height / INCH).toFixed(3)}]`;
  };
  for (const [cluster, nodes] of clusters) {
    if (cluster < 0) lines.push(...nodes.map(draw));
    else {
      const title = quoted(graph.clusters[cluster]?.title ?? []);
      lines.push(`subgraph cluster_${cluster} {`, `graph [label=${title} labeljust=l fontsize=13 margin=10]`);
      lines.push(...nodes.map(draw), "}");
    }
  }
  cut.edges.forEach((edge, index) => {
    const label = edge.labels.length ? ` label=${quoted(wrapped(edge.labels))}` : "";
    lines.push(`n${edge.from} -> n${edge.to} [id="${index}"${label}]`);
  });
  lines.push("}");
  return lines.join("\n");
}

/** Lines as one quoted label, aligned left, that Graphviz takes as they are. */
function quoted(lines: readonly string[]): string {
  return `"${lines.map((line) => line.replace(/[\\"]/g, "\\$&") + "\\l").join("")}"`;
}

/** Break labels into short lines after a space, a dot or an underscore. */
export function wrapped(labels: readonly string[]): string[] {
  return labels.flatMap((label) => {
    const lines = [""];
    for (const part of label.match(/[^ ._(]*[ ._(]*/g) ?? []) {
      const last = lines[lines.length - 1] ?? "";
      if (last && last.length + part.trimEnd().length > WRAP) lines.push(part);
      else lines[lines.length - 1] = last + part;
    }
    return lines;
  });
}
