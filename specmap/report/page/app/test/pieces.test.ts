import assert from "node:assert/strict";
import test from "node:test";
import { ofWorker, workerOf } from "../src/cut.ts";
import type { Graph, GraphNode } from "../src/data.ts";
import { dotOf, wrapped } from "../src/dot.ts";
import { drawingOf, neighbour } from "../src/drawing.ts";
import { blocksOf } from "../src/markdown.tsx";
import { search } from "../src/search.ts";
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

test("DOT quotes what it is given", () => {
  const dot = dotOf(graph, ofWorker(graph, 0, 0, true), () => ({ width: 72, height: 36 }));
  assert.ok(dot.includes('label="if \\"a\\\\b\\"\\l"'), dot);
  assert.ok(dot.includes("n0 [width=1.000 height=0.500]"));
  assert.ok(dot.includes("subgraph cluster_0 {"));
  assert.deepEqual(wrapped(["aaaaaaaaaa.bbbbbbbbbb.cccccccccc.dddddddddd"]), ["aaaaaaaaaa.bbbbbbbbbb.", "cccccccccc.dddddddddd"]);
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
