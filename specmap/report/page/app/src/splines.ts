// Graphviz's positions as SVG. Its y grows upwards, SVG's downwards.

export interface Point {
  x: number;
  y: number;
}

export interface Edge {
  /** The curve, as the `d` of an SVG path. */
  path: string;
  /** Where the arrow points, and where its shaft ends; absent where there is no arrow. */
  tip?: Point;
  base?: Point;
}

/** Read "x,y", with y measured from the top of a drawing of this height. */
export function point(text: string, height: number): Point {
  const [x = 0, y = 0] = text.split(",").map(Number);
  return { x, y: height - y };
}

/** Read an edge's `pos`: "e,x,y" and "s,x,y" are arrow tips, the rest is a B-spline. */
export function edge(pos: string, height: number): Edge {
  const parts = pos.trim().split(/\s+/);
  const tips = new Map(parts.filter((p) => /^[es],/.test(p)).map((p) => [p[0], point(p.slice(2), height)]));
  const points = parts.filter((p) => !/^[es],/.test(p)).map((p) => point(p, height));
  const [start, ...rest] = points;
  if (!start) return { path: "" };
  const curves = [];
  for (let at = 0; at + 2 < rest.length; at += 3) {
    curves.push("C" + rest.slice(at, at + 3).map((p) => `${round(p.x)} ${round(p.y)}`).join(" "));
  }
  const path = `M${round(start.x)} ${round(start.y)}${curves.join("")}`;
  const tip = tips.get("e");
  const base = points.at(-1);
  return tip && base ? { path, tip, base } : { path };
}

/** The three corners of an arrow head, for an SVG polygon. */
export function arrow(base: Point, tip: Point, half = 3.4): string {
  const length = Math.hypot(tip.x - base.x, tip.y - base.y) || 1;
  const [dx, dy] = [(tip.x - base.x) / length, (tip.y - base.y) / length];
  const corners = [tip, { x: base.x - dy * half, y: base.y + dx * half }, { x: base.x + dy * half, y: base.y - dx * half }];
  return corners.map((p) => `${round(p.x)},${round(p.y)}`).join(" ");
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
