import assert from "node:assert/strict";
import test from "node:test";
import { gzipSync } from "node:zlib";
import { Cycles } from "../src/cycles.ts";
import type { Column, Page, Rank, Timeline } from "../src/data.ts";
import { inflate, split, type Columns } from "../src/unpack.ts";

/** Puts columns behind each other at multiples of eight, as data.ts says. */
class Writer {
  readonly bytes: number[] = [];

  add(type: Column["type"], values: number[], delta = false): Column {
    const width = { u8: 1, u16: 2, u32: 4, f64: 8 }[type];
    const at = this.bytes.length;
    const stored = delta ? values.map((value, index) => value - (values[index - 1] ?? 0)) : values;
    const view = new DataView(new ArrayBuffer(stored.length * width));
    stored.forEach((value, index) => {
      if (type === "u8") view.setUint8(index, value);
      else if (type === "u16") view.setUint16(index * 2, value, true);
      else if (type === "u32") view.setUint32(index * 4, value, true);
      else view.setFloat64(index * 8, value, true);
    });
    this.bytes.push(...new Uint8Array(view.buffer));
    while (this.bytes.length % 8) this.bytes.push(0);
    return { at, count: values.length, type, delta };
  }
}

function packed(page: unknown, columns: number[]): string {
  const json = new TextEncoder().encode(JSON.stringify(page));
  const head = new Uint8Array(4);
  new DataView(head.buffer).setUint32(0, json.length, true);
  const padding = new Uint8Array((8 - ((4 + json.length) % 8)) % 8);
  return gzipSync(Buffer.concat([head, json, padding, new Uint8Array(columns)])).toString("base64");
}

test("the JSON and every type of column come back", async () => {
  for (const name of ["", "x", "xy", "é–漢", "12345678"]) {
    const writer = new Writer();
    const given: [Column, number[]][] = [
      [writer.add("u8", [0, 255, 3]), [0, 255, 3]],
      [writer.add("u16", [65535, 1]), [65535, 1]],
      [writer.add("u32", [4294967295]), [4294967295]],
      [writer.add("f64", [9007199254740991, 0.5]), [9007199254740991, 0.5]],
      [writer.add("u8", [], true), []],
      [writer.add("u8", [200, 400, 401], true), [200, 400, 401]],
      [writer.add("f64", [5, 3, 9], true), [5, 3, 9]],
    ];
    const { page, columns } = split(await inflate(packed({ schema: 1, name }, writer.bytes)));
    assert.deepEqual(page as unknown, { schema: 1, name });
    for (const [column, values] of given) assert.deepEqual([...columns.values(column)], values);
  }
});

/** Cycles 5, 7 and 8 with two, none and two passes. */
async function cycles(): Promise<Cycles> {
  const w = new Writer();
  const timeline: Timeline = {
    cycles: 3,
    passes: 4,
    keys: [
      { worker: "W", phase: "draft" },
      { worker: "W", phase: "verify" },
    ],
    states: ["GRAPH", "PIECEWISE", "EAGER", "PARTIAL", "CAPTURE"],
    reasons: ["", "too large"],
    cycle: {
      number: w.add("u8", [5, 7, 8], true),
      start: w.add("u32", [0, 100, 70000], true),
      entry: w.add("u16", [30, 500, 20]),
      size: w.add("u8", [2, 0, 3]),
      passes: w.add("u8", [2, 0, 2]),
      diverges: w.add("u8", [0, 0, 1]),
    },
    pass: {
      key: w.add("u8", [0, 1, 1, 1]),
      state: w.add("u8", [0, 2, 0, 2]),
      reason: w.add("u8", [0, 1, 0, 1]),
      start: w.add("u8", [1, 9, 1, 8]),
      cpu: w.add("u8", [4, 7, 5, 6]),
      gpu: w.add("u8", [0, 1, 0, 11]),
      size: w.add("u8", [3, 3, 4, 0]),
      graphSize: w.add("u8", [5, 0, 5, 0]),
      replays: w.add("u8", [1, 0, 1, 0]),
      accepted: w.add("u8", [0, 3, 1, 0]),
    },
  };
  const { columns } = split(await inflate(packed({} as Page, w.bytes))) as { columns: Columns };
  return new Cycles({ title: "TP 0", timeline } as unknown as Rank, columns);
}

test("a lane holds the worst state of a cycle's passes", async () => {
  const made = await cycles();
  assert.deepEqual(made.lanes.map((lane) => [...lane.codes]), [
    [1, 0, 0],
    [5, 0, 5],
  ]);
  assert.deepEqual([...made.diverges.codes], [0, 0, 1]);
});

test("cycles are found by number, missing ones too", async () => {
  const made = await cycles();
  assert.deepEqual([4, 5, 6, 7, 8, 9].map((number) => made.indexOf(number)), [0, 0, 1, 1, 2, 3]);
});

test("zero is not known, and everything else one less", async () => {
  const made = await cycles();
  const [first, second] = made.passesOf(0);
  assert.deepEqual(first, {
    worker: "W", phase: "draft", state: "GRAPH", reason: "", startUs: 1, cpuUs: 4, gpuUs: null, size: 2, graphSize: 4, replays: 1, accepted: null,
  });
  assert.deepEqual([second?.gpuUs, second?.graphSize, second?.accepted, second?.reason], [0, null, 2, "too large"]);
  assert.deepEqual(made.passesOf(1), []);
  assert.equal(made.passesOf(2)[1]?.size, null);
});

test("the longest of many cycles is found", async () => {
  const made = await cycles();
  assert.equal(made.longest(0, 3), 500);
  assert.equal(made.longest(2, 3), 20);
  assert.equal(made.longest(1, 1), 0);
});
