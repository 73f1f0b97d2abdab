import assert from "node:assert/strict";
import test from "node:test";
import type { Atom, Term } from "../src/data.ts";
import { Conditions, type Truth } from "../src/terms.ts";

/** Atoms a, b, c ...; `same` may name an earlier one. */
function atoms(count: number, same: Record<number, number> = {}): Atom[] {
  return Array.from({ length: count }, (_, at) => ({
    text: `t${same[at] ?? at}`,
    kind: "launch",
    place: null,
    same: same[at] ?? at,
    size: null,
    togglable: true,
    fixed: "",
  }));
}

/** Terms by hand: numbers below the count of atoms are leaves, then come the operators. */
function settle(count: number, operators: Term[], truths: Truth[], same: Record<number, number> = {}): Truth {
  const terms: Term[] = [...Array.from({ length: count }, (_, at) => at), ...operators];
  return new Conditions(atoms(count, same), terms).settle(terms.length - 1, truths);
}

test("and, or and not are Kleene's", () => {
  const values: Truth[] = [true, false, null];
  const and = (a: Truth, b: Truth) => (a === false || b === false ? false : a === null || b === null ? null : true);
  for (const a of values) {
    assert.equal(settle(1, [["not", 0]], [a]), a === null ? null : !a);
    for (const b of values) {
      assert.equal(settle(2, [["and", 0, 1]], [a, b]), and(a, b));
      const or = and(a === null ? null : !a, b === null ? null : !b);
      assert.equal(settle(2, [["or", 0, 1]], [a, b]), or === null ? null : !or);
    }
  }
});

test("empty operators are the constants", () => {
  assert.equal(settle(1, [["and"]], [null]), true);
  assert.equal(settle(1, [["or"]], [null]), false);
  assert.equal(settle(1, [["and"], ["not", 1]], [null]), false);
});

test("a test and its negation settle what holds them both", () => {
  assert.equal(settle(1, [["not", 0], ["and", 0, 1]], [null]), false);
  assert.equal(settle(1, [["not", 0], ["or", 0, 1]], [null]), true);
});

test("the same test at two places is one test", () => {
  assert.equal(settle(2, [["not", 1], ["and", 0, 2]], [null, null], { 1: 0 }), false);
  assert.equal(settle(2, [["not", 1], ["and", 0, 2]], [null, null]), null);
});

test("what a conjunction states is true inside its other terms", () => {
  // a and (not a or b) with b false: nothing is left
  assert.equal(settle(2, [["not", 0], ["or", 2, 1], ["and", 0, 3]], [null, false]), false);
});

test("few tests are tried in all cases, many are not", () => {
  // (a and b) or (a and not b) or (not a and b) or (not a and not b)
  const all: Term[] = [["not", 0], ["not", 1], ["and", 0, 1], ["and", 0, 3], ["and", 2, 1], ["and", 2, 3], ["or", 4, 5, 6, 7]];
  assert.equal(settle(2, all, [null, null]), true);
  // The same beside seven more tests is left open, although it holds in all cases.
  const nine: Term[] = [["not", 0], ["not", 1], ["and", 0, 1], ["and", 0, 10], ["and", 9, 1], ["and", 9, 10], ["and", 2, 3, 4, 5, 6, 7, 8], ["or", 11, 12, 13, 14, 15]];
  assert.equal(settle(9, nine, new Array<Truth>(9).fill(null)), null);
});

test("negation reaches the leaves", () => {
  // not (a and (b or c)) with a true, b false, c false
  assert.equal(settle(3, [["or", 1, 2], ["and", 0, 3], ["not", 4]], [true, false, false]), true);
});

test("the atoms of a term, each once", () => {
  const terms: Term[] = [0, 1, 2, ["or", 1, 0], ["and", 3, 1]];
  assert.deepEqual(new Conditions(atoms(3), terms).atomsOf(4), [1, 0]);
});
