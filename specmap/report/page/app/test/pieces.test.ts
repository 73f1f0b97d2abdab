import assert from "node:assert/strict";
import test from "node:test";
import { kindsOf, ofWorker, waysOf, workerOf } from "../src/cut.ts";
import type { Graph, GraphNode, Side } from "../src/data.ts";
import { brief, dotOf } from "../src/dot.ts";
import { drawingOf, neighbour } from "../src/drawing.ts";
import { blocksOf } from "../src/markdown.tsx";
import { search } from "../src/search.ts";
import { Settling } from "../src/settling.ts";
import { edge, point } from "../src/splines.ts";
import { panned, ticks, within, zoomed } from "../src/view.ts";

test("search wants every word, and puts whole names first", () => {
  const items = ["forward_extend", "replay", "extend worker", "EXTEND_V2", "nothing"].map((name) => ({ name, text: "" }));
  items.push({ name: "phase", text: "extend in model_runner.py" });
  assert.deepEqual(search("extend", items), [2, 3, 0, 5]);
  assert.deepEqual(search("extend runner", items), [5]);
  assert.deepEqual(search("  ", items), []);
  assert.deepEqual(search("(", items), []);
});

test("Graphviz's splines become SVG with y downwards", () => {
  assert.deepEqual(point("10,20", 100), { x: 10, y: 80 });
  const found = edge("e,72,52.2 72,87.7 72,81.1 72,72.2 72,63.5", 109.6);
  assert.equal(found.path, "M72 21.9C72 28.5 72 37.4 72 46.1");
  assert.ok(found.tip && Math.abs(found.tip.y - 57.4) < 1e-9);
  assert.equal(edge("0,0 1,1 2,2 3,3", 10).tip, undefined);
});

test("a window stays within the whole", () => {
  const whole = { from: 0, to: 100 };
  assert.deepEqual(zoomed({ from: 0, to: 100 }, 50, 0.5, whole, 1), { from: 25, to: 75 });
  assert.deepEqual(zoomed({ from: 25, to: 75 }, 25, 0.5, whole, 1), { from: 25, to: 50 });
  assert.deepEqual(zoomed({ from: 10, to: 20 }, 15, 100, whole, 1), whole);
  assert.deepEqual(zoomed({ from: 10, to: 20 }, 15, 0.001, whole, 8), { from: 11, to: 19 });
  assert.deepEqual(panned({ from: 10, to: 20 }, -50, whole), { from: 0, to: 10 });
  assert.deepEqual(panned({ from: 10, to: 20 }, 500, whole), { from: 90, to: 100 });
  assert.deepEqual(within({ from: -50, to: 500 }, whole), whole);
});

test("ticks are round", () => {
  assert.deepEqual(ticks({ from: 3, to: 101 }, 5), [20, 40, 60, 80, 100]);
  assert.deepEqual(ticks({ from: 0, to: 4 }, 10), [0, 1, 2, 3, 4]);
});

test("Markdown of rule pages", () => {
  assert.deepEqual(blocksOf("# A b\n\none\ntwo `x`\n\n- a\n  more\n- b\n\n```py\n# no heading\n```\nend"), [
    { kind: "heading", level: 1, text: "A b" },
    { kind: "text", text: "one two `x`" },
    { kind: "list", items: ["a more", "b"] },
    { kind: "code", text: "# no heading" },
    { kind: "text", text: "end" },
  ]);
});

const node = (kind: GraphNode["kind"], on: GraphNode["on"]) => ({ kind, on, cluster: 0, lines: [kind], full: "", symbol: "", verdict: "", phase: null, place: null, terms: [], id: kind }) as GraphNode;
const graph: Graph = {
  nodes: [node("function", [[0, 3]]), node("phase", [[0, 1]]), node("sink", [[0, 2], [1, 0]]), node("leaves", [[0, 0]])],
  edges: [
    { from: 0, to: 1, kind: "call", labels: ['if "a\\b"'], full: [], on: [[0, 1]] },
    { from: 0, to: 2, kind: "call", labels: [], full: [], on: [[0, 2]] },
    { from: 0, to: 3, kind: "boundary", labels: [], full: [], on: [[0, 0]] },
  ],
  clusters: [{ id: "C", title: ["C", "file.py:1"] }],
};

test("a cut holds one worker's part, and a phase's", () => {
  const nodes = (worker: number, mask: number, leaves: boolean) => ofWorker(graph, worker, mask, leaves).nodes;
  assert.deepEqual(nodes(0, 0, true), [0, 1, 2, 3]);
  assert.deepEqual(nodes(0, 0, false), [0, 1, 2]);
  assert.deepEqual(nodes(0, 1, true), [0, 1, 3]);
  assert.deepEqual(nodes(1, 0, true), [2]);
  assert.deepEqual(ofWorker(graph, 0, 2, false).edges.map(({ to }) => to), [2]);
  assert.equal(workerOf(node("sink", [[3, 0], [1, 0]]), 1), 1);
  assert.equal(workerOf(node("sink", [[3, 0], [1, 0]]), 0), 3);
});

test("DOT leaves the room that the page measured, and holds no text of the source", () => {
  const square = () => ({ width: 72, height: 36 });
  const dot = dotOf(graph, ofWorker(graph, 0, 0, true), { node: square, title: () => ({ width: 90.2, height: 30 }), label: () => ({ width: 50, height: 16 }) });
  assert.ok(dot.includes("n0 [width=1.000 height=0.500]"));
  assert.ok(dot.includes("subgraph cluster_0 {"));
  assert.ok(dot.includes('fixedsize="true" width="91" height="30"'), dot);
  assert.ok(dot.includes('fixedsize="true" width="50" height="16"'), dot);
  assert.ok(!dot.includes("file.py") && !dot.includes("if "), dot);
});

test("labels are cut to one line each, and to a few", () => {
  assert.deepEqual(brief([":1 if a", "x".repeat(40)]), [":1 if a", `${"x".repeat(29)}…`]);
  assert.deepEqual(brief(["a", "b", "c", "d", "e"]), ["a", "b", "3 more"]);
});

test("a sink is what the passes of the phase make of it", () => {
  const phase = (name: string, kind: string) => ({ name, arms: [{ kind, sink: 4 }, { kind: "eager", sink: 5 }] });
  const side = { workers: [{ phases: [phase("verify", "graph"), phase("target_prefill", "piecewise")] }] } as unknown as Side;
  assert.deepEqual(kindsOf(side, 4, 0, "verify"), ["GRAPH"]);
  assert.deepEqual(kindsOf(side, 4, -1, ""), ["GRAPH", "PIECEWISE"]);
  assert.deepEqual(kindsOf(side, 5, 0, ""), ["EAGER"]);
});

test("the ways of a phase hold its chains, its sinks and the decisions whose tests are in their conditions", () => {
  const place = (line: number) => ({ file: "f.py", line, end: line });
  const made = (id: string, kind: GraphNode["kind"], rest: Partial<GraphNode> = {}): GraphNode => ({ ...node(kind, [[0, 3]]), id, ...rest });
  const decision = (id: string, line: number) => made(id, "decision", { terms: [{ text: "t", place: place(line), graphWhen: true }] });
  const nodes = [
    made("run", "function"), made("step", "function"), made("phase", "phase", { phase: [0, 0] }), made("verify", "function"), made("sink", "sink"),
    decision("asked", 7), decision("of another", 9), made("elsewhere", "function"), made("other sink", "sink"),
  ];
  const edge = (from: number, to: number, kind = "call") => ({ from, to, kind, labels: [], full: [], on: [[0, 3]] }) as unknown as Graph["edges"][number];
  const edges = [edge(0, 1), edge(1, 2), edge(2, 3), edge(3, 4), edge(3, 5, "asks"), edge(3, 6, "asks"), edge(7, 8), edge(7, 5, "asks")];
  const atom = { text: "t", kind: "launch", place: place(7), same: 0, size: null, togglable: true, fixed: "" };
  const arm = { kind: "graph", when: 0, sink: 4, chain: [{ symbol: "step", line: 1 }, { symbol: "verify", line: 2 }] };
  const side = { graph: { nodes, edges, clusters: [] }, atoms: [atom], terms: [0], sources: {}, workers: [{ phases: [{ name: "verify", arms: [arm] }] }] } as unknown as Side;
  const cut = waysOf(new Settling(side), 0, 0, 1, false);
  assert.deepEqual(cut.nodes.map((at) => nodes[at]?.id), ["run", "step", "phase", "verify", "sink", "asked"]);
  assert.equal(cut.boxed, false);
});

test("Graphviz's answer is placed, and arrow keys find the next node", () => {
  const cut = ofWorker(graph, 0, 0, false);
  const laid = {
    bb: "0,0,200,100",
    objects: [
      { name: "cluster_0", bb: "0,0,200,100" },
      { name: "n0", pos: "100,90", width: "1", height: "0.5" },
      { name: "n1", pos: "50,10", width: "1", height: "0.5" },
      { name: "n2", pos: "150,12", width: "1", height: "0.5" },
    ],
    edges: [{ id: "0", pos: "e,50,28 100,72 90,60 60,50 52,35" }],
  };
  const drawing = drawingOf(laid, cut);
  assert.deepEqual(drawing.nodes[0], { node: 0, at: { x: 100, y: 10 }, width: 72, height: 36 });
  assert.equal(drawing.edges.length, 1);
  assert.equal(neighbour(drawing, 1, 1, 0), 2);
  assert.equal(neighbour(drawing, 1, 0, -1), 0);
  assert.equal(neighbour(drawing, 0, 0, -1), undefined);
});
