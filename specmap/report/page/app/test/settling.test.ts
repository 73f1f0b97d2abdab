import assert from "node:assert/strict";
import test from "node:test";
import type { Phase, Side, SizeTest } from "../src/data.ts";
import { Settling, sizeTruth } from "../src/settling.ts";
import cases from "./sizetests.json" with { type: "json" };

test("a batch size against captured sizes that are known", () => {
  const captured = { sizes: [1, 2, 4], least: [1, 2, 4] };
  assert.equal(sizeTruth("one of", 2, captured), true);
  assert.equal(sizeTruth("one of", 3, captured), false);
  assert.equal(sizeTruth("at most", 3, captured), true);
  assert.equal(sizeTruth("at most", 5, captured), false);
  assert.equal(sizeTruth("at most", 1, { sizes: [], least: [] }), false);
  assert.equal(sizeTruth("at most", null, captured), null);
});

test("a batch size against sizes of which only some are known", () => {
  assert.equal(sizeTruth("one of", 2, { sizes: null, least: [1, 2] }), true);
  assert.equal(sizeTruth("one of", 4, { sizes: null, least: [1, 2] }), null);
  assert.equal(sizeTruth("at most", 2, { sizes: null, least: [1, 2] }), true);
  assert.equal(sizeTruth("at most", 4, { sizes: null, least: [1, 2] }), null);
  assert.equal(sizeTruth("at most", 1), true);
  assert.equal(sizeTruth("at most", 2), null);
});

test("a batch size against numbers, as Python computes it", () => {
  for (const [test, size, holds] of cases as [SizeTest, number, boolean | null][]) assert.equal(sizeTruth(test, size), holds, JSON.stringify([test, size]));
});

/** One phase: graph under test 0 and a size test, else eager. */
function made(): { side: Side; phase: Phase } {
  const atom = { kind: "launch", place: null, togglable: true, fixed: "" };
  const phase = {
    ends: { graph: 4, piecewise: 5, eager: 6 },
    verdict: "depends",
    values: [
      { atom: 0, value: true, source: "launch", note: "", reasons: [] },
      { atom: 1, value: null, source: "size", note: "", reasons: [] },
    ],
  } as unknown as Phase;
  const side = {
    atoms: [
      { ...atom, text: "a", same: 0, size: null },
      { ...atom, text: "bs <= max", same: 1, size: "at most" },
      { ...atom, text: "a", same: 0, size: null },
    ],
    terms: [0, 1, 2, ["and"], ["and", 0, 1], ["or"], ["not", 4]],
    launch: { captured: { sizes: [1, 2], least: [1, 2] } },
    workers: [{ phases: [phase] }],
  } as unknown as Side;
  return { side, phase };
}

test("the verdict follows the batch size and the tests that were set", () => {
  const { side, phase } = made();
  const settling = new Settling(side);
  const verdict = (batchSize: number | null, ...set: [number, boolean | null][]) => settling.verdict(phase, { truths: new Map(set), batchSize });
  assert.equal(verdict(2), "GRAPH");
  assert.equal(verdict(3), "EAGER");
  assert.equal(verdict(null), "UNKNOWN");
  assert.equal(verdict(2, [0, false]), "EAGER");
  assert.equal(verdict(2, [0, null]), "UNKNOWN");
  assert.equal(verdict(2), "GRAPH");
});

test("a test that was set is set at all its places", () => {
  const { side, phase } = made();
  assert.deepEqual(new Settling(side).truths(phase, { truths: new Map([[0, false]]), batchSize: 1 }), [false, true, false]);
});

test("two ends at once are no answer, and no end is no run", () => {
  const { side, phase } = made();
  phase.ends = { graph: 3, piecewise: 3, eager: 5 };
  assert.equal(new Settling(side).verdictOf(phase, [null, null, null]), "UNKNOWN");
  phase.ends = { graph: 5, piecewise: 5, eager: 5 };
  assert.equal(new Settling(side).verdictOf(phase, [null, null, null]), "NOT_RUN");
});
