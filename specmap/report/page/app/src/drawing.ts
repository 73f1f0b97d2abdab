// Graphviz's answer as things to draw.
import type { Cut } from "./cut.ts";
import type { Laid } from "./graphviz.ts";
import { edge, point, type Edge, type Point } from "./splines.ts";

export interface Drawing {
  width: number;
  height: number;
  nodes: { node: number; at: Point; width: number; height: number }[];
  edges: (Edge & { index: number; label?: Point })[];
  clusters: { cluster: number; x: number; y: number; width: number; height: number }[];
}

/** Take positions out of Graphviz's JSON; its inches become points. */
export function drawingOf(laid: Laid, cut: Cut): Drawing {
  const [, , width = 0, height = 0] = laid.bb.split(",").map(Number);
  const drawing: Drawing = { width, height, nodes: [], edges: [], clusters: [] };
  for (const object of laid.objects ?? []) {
    const name = /^(n|cluster_)(\d+)$/.exec(object.name);
    if (!name) continue;
    if (object.bb) {
      const [left = 0, bottom = 0, right = 0, top = 0] = object.bb.split(",").map(Number);
      drawing.clusters.push({ cluster: Number(name[2]), x: left, y: height - top, width: right - left, height: top - bottom });
    } else if (object.pos) {
      const size = { width: Number(object.width) * 72, height: Number(object.height) * 72 };
      drawing.nodes.push({ node: Number(name[2]), at: point(object.pos, height), ...size });
    }
  }
  for (const found of laid.edges ?? []) {
    const index = Number(found.id);
    if (!found.pos || !cut.edges[index]) continue;
    drawing.edges.push({ index, ...edge(found.pos, height), ...(found.lp ? { label: point(found.lp, height) } : {}) });
  }
  return drawing;
}

/** The node next to another in a direction: near ones first, sideways distance counts double. */
export function neighbour(drawing: Drawing, from: number, dx: number, dy: number): number | undefined {
  const here = drawing.nodes.find(({ node }) => node === from)?.at;
  if (!here) return drawing.nodes[0]?.node;
  let best: { node: number; cost: number } | undefined;
  for (const { node, at } of drawing.nodes) {
    const along = (at.x - here.x) * dx + (at.y - here.y) * dy;
    if (node === from || along <= 1) continue;
    const cost = along + 2 * Math.abs((at.x - here.x) * dy + (at.y - here.y) * dx);
    if (!best || cost < best.cost) best = { node, cost };
  }
  return best?.node;
}
