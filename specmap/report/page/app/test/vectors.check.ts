// Verdicts equal to Python's. `node test.mjs FOLDER` runs it on NAME.json, a page's data, and
// NAME.vectors.json, random settings of its first side with the verdicts that Python gives.
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import type { Page } from "../src/data.ts";
import { Settling } from "../src/settling.ts";
import type { Truth } from "../src/terms.ts";

interface Vector {
  truths: Truth[];
  expected: string[][];
}

const folder = process.env["SPECMAP_VECTORS"] ?? "";
const names = readdirSync(folder).filter((name) => name.endsWith(".vectors.json"));
assert.ok(names.length > 0, "the folder holds no vectors");

function read<T>(name: string): T {
  return JSON.parse(readFileSync(join(folder, name), "utf8")) as T;
}

for (const name of names) {
  test(`verdicts equal Python's on random settings of ${name}`, () => {
    const vectors = read<Vector[]>(name);
    const [side] = read<Page>(name.replace(".vectors", "")).sides;
    assert.ok(side && vectors.length > 0);
    const settling = new Settling(side);
    for (const [at, { truths, expected }] of vectors.entries()) {
      const found: string[][] = side.workers.map((worker) => worker.phases.map((phase) => settling.verdictOf(phase, truths)));
      assert.deepEqual(found, expected, `vector ${at}`);
    }
  });
}
