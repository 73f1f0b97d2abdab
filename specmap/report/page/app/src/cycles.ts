// The recorded cycles of one rank, decoded for drawing and asking.
import type { Rank, State, Timeline } from "./data.ts";
import { Lane } from "./lanes.ts";
import type { Columns, Numbers } from "./unpack.ts";

/** Codes of states in a lane: the greater one speaks for a cycle with several passes; 0 is no pass. */
export const CODES: Record<State, number> = { GRAPH: 1, PIECEWISE: 2, CAPTURE: 3, PARTIAL: 4, EAGER: 5 };
const BLOCK = 64;

/** One pass in words and numbers; null where it is not known. Times in microseconds. */
export interface Pass {
  worker: string;
  phase: string;
  state: string;
  reason: string;
  startUs: number;
  cpuUs: number;
  gpuUs: number | null;
  size: number | null;
  graphSize: number | null;
  replays: number;
  accepted: number | null;
}

export class Cycles {
  readonly rank: Rank;
  readonly #columns: Columns;
  readonly #timeline: Timeline;
  readonly #decoded = new Map<string, Numbers>();
  readonly numbers: Numbers;
  /** Index of the first pass of each cycle, and at the end the number of passes. */
  readonly first: Uint32Array;
  /** A lane for each key of the timeline. */
  readonly lanes: Lane[];
  /** 1 where the ranks did not all do the same. */
  readonly diverges: Lane;
  readonly #blocks: Float64Array;

  constructor(rank: Rank, columns: Columns) {
    this.rank = rank;
    this.#columns = columns;
    this.#timeline = rank.timeline;
    this.numbers = this.cycle("number");
    const passes = this.cycle("passes");
    this.first = new Uint32Array(passes.length + 1);
    for (let at = 0; at < passes.length; at++) this.first[at + 1] = (this.first[at] ?? 0) + (passes[at] ?? 0);
    this.lanes = this.#laid().map((codes) => new Lane(codes));
    this.diverges = new Lane(Uint8Array.from(this.cycle("diverges")));
    this.#blocks = maxima(this.cycle("entry"));
  }

  get length(): number {
    return this.numbers.length;
  }

  get keys(): Timeline["keys"] {
    return this.#timeline.keys;
  }

  cycle(name: keyof Timeline["cycle"]): Numbers {
    return this.#values(`cycle ${name}`, this.#timeline.cycle[name]);
  }

  pass(name: keyof Timeline["pass"]): Numbers {
    return this.#values(`pass ${name}`, this.#timeline.pass[name]);
  }

  /** The index of the first cycle whose number is `number` or greater. */
  indexOf(number: number): number {
    let [low, high] = [0, this.numbers.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.numbers[middle] ?? 0) < number) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** The longest CPU time of a cycle from one index up to, not including, another. */
  longest(from: number, to: number): number {
    const entry = this.cycle("entry");
    let most = 0;
    for (let at = from; at < to; ) {
      if (at % BLOCK === 0 && at + BLOCK <= to) {
        most = Math.max(most, this.#blocks[at / BLOCK] ?? 0);
        at += BLOCK;
      } else most = Math.max(most, entry[at++] ?? 0);
    }
    return most;
  }

  /** The passes of one cycle, in their order. */
  passesOf(index: number): Pass[] {
    const [from = 0, to = 0] = [this.first[index], this.first[index + 1]];
    return Array.from({ length: to - from }, (_, at) => this.#pass(from + at));
  }

  state(pass: number): State {
    return this.#timeline.states[this.pass("state")[pass] ?? 0] ?? "CAPTURE";
  }

  #pass(at: number): Pass {
    const key = this.keys[this.pass("key")[at] ?? -1];
    const shifted = (name: keyof Timeline["pass"]) => (this.pass(name)[at] ?? 0) - 1;
    const known = (value: number) => (value < 0 ? null : value);
    return {
      worker: key?.worker ?? "",
      phase: key?.phase ?? "",
      state: this.state(at),
      reason: this.#timeline.reasons[this.pass("reason")[at] ?? 0] ?? "",
      startUs: this.pass("start")[at] ?? 0,
      cpuUs: this.pass("cpu")[at] ?? 0,
      gpuUs: known(shifted("gpu")),
      size: known(shifted("size")),
      graphSize: known(shifted("graphSize")),
      replays: this.pass("replays")[at] ?? 0,
      accepted: known(shifted("accepted")),
    };
  }

  #values(name: string, column: Timeline["cycle"]["number"]): Numbers {
    let values = this.#decoded.get(name);
    if (!values) this.#decoded.set(name, (values = this.#columns.values(column)));
    return values;
  }

  #laid(): Uint8Array[] {
    const lanes = this.keys.map(() => new Uint8Array(this.length));
    const [keys, states] = [this.pass("key"), this.pass("state")];
    const codes = this.#timeline.states.map((state) => CODES[state]);
    for (let index = 0; index < this.length; index++) {
      for (let pass = this.first[index] ?? 0; pass < (this.first[index + 1] ?? 0); pass++) {
        const lane = lanes[keys[pass] ?? -1];
        const code = codes[states[pass] ?? -1] ?? 0;
        if (lane && code > (lane[index] ?? 0)) lane[index] = code;
      }
    }
    return lanes;
  }
}

function maxima(values: Numbers): Float64Array {
  const blocks = new Float64Array(Math.ceil(values.length / BLOCK));
  for (let at = 0; at < values.length; at++) {
    const block = Math.floor(at / BLOCK);
    blocks[block] = Math.max(blocks[block] ?? 0, values[at] ?? 0);
  }
  return blocks;
}
