import assert from "node:assert/strict";
import test from "node:test";
import { bins, Lane, quantile } from "../src/lanes.ts";

const codes = Uint8Array.from({ length: 1000 }, (_, at) => (at % 7 === 0 ? 5 : at % 3 === 0 ? 0 : 1));

test("counts between any two cycles are those of a plain count", () => {
  const lane = new Lane(codes);
  for (const [from, to] of [[0, 1000], [0, 0], [13, 14], [100, 321], [-5, 2000], [999, 1000]] as const) {
    for (const code of [0, 1, 5, 9]) {
      assert.equal(lane.count(code, from, to), codes.slice(Math.max(0, from), to).filter((one) => one === code).length);
    }
  }
  assert.deepEqual([lane.has(5), lane.has(9)], [true, false]);
});

test("the next one of a code, in both directions", () => {
  const lane = new Lane(codes);
  assert.equal(lane.next(5, 0, 1), 7);
  assert.equal(lane.next(5, -1, 1), 0);
  assert.equal(lane.next(5, 7, -1), 0);
  assert.equal(lane.next(5, 0, -1), undefined);
  assert.equal(lane.next(5, 994, 1), undefined);
  assert.equal(lane.next(9, 0, 1), undefined);
});

test("every value is in one bin", () => {
  assert.deepEqual(bins([0, 1, 2, 3, 4], 4, { least: 0, most: 4, log: false }), [1, 1, 1, 2]);
  assert.deepEqual(bins([1, 10, 100, 1000], 3, { least: 1, most: 1000, log: true }).reduce((a, b) => a + b), 4);
  assert.deepEqual(bins([-9, 99], 2, { least: 0, most: 4, log: false }), [1, 1]);
  assert.deepEqual(bins([5, 5], 3, { least: 5, most: 5, log: false }), [2, 0, 0]);
});

test("quantiles by nearest rank", () => {
  const sorted = [15, 20, 35, 40, 50]; // the textbook's example of the nearest rank
  assert.deepEqual([0.05, 0.3, 0.4, 0.5, 1].map((share) => quantile(sorted, share)), [15, 20, 20, 35, 50]);
  assert.ok(Number.isNaN(quantile([], 0.5)));
});
