// Paints the part of the timeline that can be seen onto a canvas. Verdicts differ in height as
// well as in colour: eager fills its lane, a graph half of it, piecewise two thin lines.
import { CODES, type Cycles } from "./cycles.ts";
import { quantile, type Lane } from "./lanes.ts";
import { ticks, type Window } from "./view.ts";

export const GUTTER = 190;
export const AXIS = 22;
export const LANE = 13;
const HEAD = 18;
const CYCLE_TIME = 26;
const GAP = 8;
const SAMPLE = 400;

/** One row: the head of a rank, its cycle times, or the lane of one key. */
export interface Row {
  kind: "head" | "time" | "lane";
  rank: number;
  lane: number;
  top: number;
  height: number;
  text: string;
}

/** Where the rows of the ranks stand, and how high they are together. */
export function rowsOf(all: readonly Cycles[]): { rows: Row[]; height: number } {
  const rows: Row[] = [];
  let top = 0;
  const add = (kind: Row["kind"], rank: number, lane: number, height: number, text: string) => {
    rows.push({ kind, rank, lane, top, height, text });
    top += height;
  };
  all.forEach((cycles, rank) => {
    add("head", rank, -1, HEAD, cycles.rank.title);
    add("time", rank, -1, CYCLE_TIME, "cycle, CPU time");
    const workers = new Set(cycles.keys.map((key) => key.worker));
    cycles.keys.forEach((key, lane) => add("lane", rank, lane, LANE, workers.size > 1 ? `${key.phase} ${key.worker}` : key.phase));
    top += GAP;
  });
  return { rows, height: top };
}

export interface Inks {
  paper: string;
  panel: string;
  line: string;
  ink: string;
  soft: string;
  unknown: string;
  mark: string;
  states: string[];
}

/** Read the page's colours, for canvas cannot read custom properties. */
export function inksOf(host: HTMLElement): Inks {
  const probe = document.createElement("span");
  host.append(probe);
  const ink = (name: string) => {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  };
  const inks = {
    paper: ink("raised"),
    panel: ink("panel"),
    line: ink("line"),
    ink: ink("ink"),
    soft: ink("soft"),
    unknown: ink("unknown"),
    mark: ink("link"),
    states: ["", "graph", "piecewise", "not-run", "depends", "eager"].map((name) => (name ? ink(name) : "")),
  };
  probe.remove();
  return inks;
}

export interface Scene {
  all: readonly Cycles[];
  rows: readonly Row[];
  view: Window;
  scroll: number;
  cursor: { row: number; cycle: number } | null;
  width: number;
  height: number;
  inks: Inks;
}

/** Paint a scene; only rows and cycles inside the window cost anything. */
export function paint(context: CanvasRenderingContext2D, scene: Scene): void {
  const { width, height, inks } = scene;
  context.fillStyle = inks.paper;
  context.fillRect(0, 0, width, height);
  context.save();
  context.beginPath();
  context.rect(0, AXIS, width, height - AXIS);
  context.clip();
  const cut = new Map<number, Steps>();
  scene.rows.forEach((row, index) => {
    const top = AXIS + row.top - scene.scroll;
    const cycles = scene.all[row.rank];
    if (top + row.height < AXIS || top > height || !cycles) return;
    const steps = cut.get(row.rank) ?? stepsOf(scene, cycles);
    cut.set(row.rank, steps);
    paintRow(context, scene, steps, cycles, row, top, index === scene.cursor?.row);
  });
  context.restore();
  paintAxis(context, scene);
}

function paintRow(context: CanvasRenderingContext2D, scene: Scene, steps: Steps, cycles: Cycles, row: Row, top: number, current: boolean): void {
  const { inks, width } = scene;
  if (row.kind === "head") {
    context.fillStyle = inks.panel;
    context.fillRect(0, top, width, row.height);
  }
  if (current) {
    context.fillStyle = inks.mark;
    context.fillRect(0, top, 3, row.height);
  }
  context.fillStyle = row.kind === "head" ? inks.ink : inks.soft;
  context.font = `${row.kind === "head" ? "600 12px" : "11px"} system-ui, "DejaVu Sans", sans-serif`;
  context.textBaseline = "middle";
  context.fillText(row.text, 8, top + row.height / 2, GUTTER - 16);
  const lane = cycles.lanes[row.lane];
  if (row.kind === "head") paintDivergence(context, scene, steps, cycles, top, row.height);
  else if (row.kind === "time") paintTimes(context, scene, steps, cycles, top, row.height);
  else if (lane) paintLane(context, scene, steps, lane, top);
}

/** Where steps of pixels begin, how wide they are, and which cycles are in each: one step holds one at least. */
interface Steps {
  x: number[];
  width: number;
  from: number[];
  to: number[];
}

function stepsOf(scene: Scene, cycles: Cycles): Steps {
  const { from, to } = scene.view;
  const pixels = scene.width - GUTTER;
  const perCycle = pixels / (to - from);
  const steps: Steps = { x: [], width: perCycle < 1 ? 1 : perCycle - (perCycle > 4 ? 1 : 0), from: [], to: [] };
  const add = (x: number, first: number, end: number) => {
    steps.x.push(x);
    steps.from.push(first);
    steps.to.push(end);
  };
  let index = cycles.indexOf(Math.floor(from));
  if (perCycle >= 1) {
    for (; index < cycles.length && (cycles.numbers[index] ?? 0) < to; index++) add(GUTTER + ((cycles.numbers[index] ?? 0) - from) * perCycle, index, index + 1);
    return steps;
  }
  for (let pixel = 0; pixel < pixels; pixel++) {
    const next = cycles.indexOf(from + (pixel + 1) / perCycle);
    if (next > index) add(GUTTER + pixel, index, next);
    index = next;
  }
  return steps;
}

function paintLane(context: CanvasRenderingContext2D, scene: Scene, steps: Steps, lane: Lane, top: number): void {
  const high = LANE - 2;
  const bar = (code: number, from: number, part: number) => {
    if (!lane.has(code)) return;
    context.fillStyle = scene.inks.states[code] ?? "";
    for (let at = 0; at < steps.x.length; at++) {
      const [first = 0, end = 0] = [steps.from[at], steps.to[at]];
      const share = lane.count(code, first, end) / (end - first);
      if (!share) continue;
      const height = Math.max(part > 6 ? 4 : 2, part * share); // a lone pass among many cycles still shows
      context.fillRect(steps.x[at] ?? 0, from < 0 ? top + high - height : top + from, steps.width, height);
    }
  };
  bar(CODES.GRAPH, -1, 6);
  bar(CODES.PIECEWISE, high - 2, 2);
  bar(CODES.PIECEWISE, high - 6, 2);
  bar(CODES.CAPTURE, -1, 2);
  bar(CODES.PARTIAL, 0, high);
  bar(CODES.EAGER, 0, high);
}

/** A time that few cycles exceed, from a sample: one slow start must not press all others flat. */
function usual(cycles: Cycles, from: number, to: number): number {
  const entry = cycles.cycle("entry");
  const step = Math.max(1, Math.floor((to - from) / SAMPLE));
  const sample = [];
  for (let at = from; at < to; at += step) sample.push(entry[at] ?? 0);
  return (quantile(sample.sort((a, b) => a - b), 0.95) || 1) * 1.25;
}

function paintTimes(context: CanvasRenderingContext2D, scene: Scene, steps: Steps, cycles: Cycles, top: number, high: number): void {
  const most = usual(cycles, cycles.indexOf(scene.view.from), cycles.indexOf(scene.view.to));
  context.fillStyle = scene.inks.soft;
  steps.x.forEach((x, at) => {
    const part = Math.max(1, Math.min(1, cycles.longest(steps.from[at] ?? 0, steps.to[at] ?? 0) / most) * (high - 3));
    context.fillRect(x, top + high - 1 - part, steps.width, part);
  });
  context.textAlign = "right";
  context.fillText(`0 – ${(most / 1000).toFixed(1)} ms`, GUTTER - 8, top + high / 2, 80);
  context.textAlign = "left";
}

function paintDivergence(context: CanvasRenderingContext2D, scene: Scene, steps: Steps, { diverges }: Cycles, top: number, high: number): void {
  if (!diverges.has(1)) return;
  context.fillStyle = scene.inks.unknown;
  context.beginPath();
  let last = -9;
  steps.x.forEach((x, at) => {
    const middle = x + steps.width / 2;
    if (middle < last + 3 || !diverges.count(1, steps.from[at] ?? 0, steps.to[at] ?? 0)) return;
    last = middle;
    context.moveTo(middle, top + 3);
    context.lineTo(middle + 4, top + high / 2);
    context.lineTo(middle, top + high - 3);
    context.lineTo(middle - 4, top + high / 2);
  });
  context.fill();
}

function paintAxis(context: CanvasRenderingContext2D, scene: Scene): void {
  const { view, width, height, inks, cursor } = scene;
  const perCycle = (width - GUTTER) / (view.to - view.from);
  context.fillStyle = inks.paper;
  context.fillRect(0, 0, width, AXIS);
  context.fillStyle = inks.soft;
  context.font = '11px system-ui, "DejaVu Sans", sans-serif';
  context.textBaseline = "middle";
  context.fillText("cycle", 8, AXIS / 2);
  for (const at of ticks(view, (width - GUTTER) / 110)) {
    const x = GUTTER + (at - view.from) * perCycle;
    context.fillStyle = inks.line;
    context.fillRect(Math.round(x), AXIS - 5, 1, height);
    context.fillStyle = inks.soft;
    context.fillText(at.toLocaleString("en-US"), x + 4, AXIS / 2);
  }
  context.fillStyle = inks.line;
  context.fillRect(0, AXIS - 1, width, 1);
  if (cursor) {
    const x = GUTTER + (cursor.cycle + 0.5 - view.from) * perCycle;
    if (x < GUTTER) return;
    context.fillStyle = inks.mark;
    context.fillRect(Math.round(x), 0, 1, height);
  }
}
