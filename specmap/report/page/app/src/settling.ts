// Verdicts of phases under the tests that somebody set, and a batch size.
import type { Captured, Computed, Ends, Phase, Side, SizeTest, Verdict } from "./data.ts";
import { Conditions, type Truth } from "./terms.ts";

/** What somebody set: tests by their `same`, and the batch size. */
export interface Settings {
  truths: ReadonlyMap<number, Truth>;
  batchSize: number | null;
}

const NOTHING: Pick<Captured, "sizes" | "least"> = { sizes: null, least: [] };

const APPLIED: Record<string, (left: number, right: number) => number | boolean> = {
  "+": (left, right) => left + right,
  "-": (left, right) => left - right,
  "*": (left, right) => left * right,
  "//": (left, right) => Math.floor(left / right),
  "%": (left, right) => left - right * Math.floor(left / right),
  "<": (left, right) => left < right,
  "<=": (left, right) => left <= right,
  ">": (left, right) => left > right,
  ">=": (left, right) => left >= right,
  "==": (left, right) => left === right,
  "!=": (left, right) => left !== right,
};

/** The value of a computed test at a batch size; null where it has none. */
function computed(test: Computed, batch: number): number | null {
  if (test === "bs") return batch;
  if (typeof test === "number") return test;
  const [word, first, second] = test;
  const [left, right] = [computed(first, batch), computed(second, batch)];
  if (left === null || right === null || ((word === "//" || word === "%") && right === 0)) return null;
  return Number(APPLIED[word]?.(left, right));
}

/** The truth of a test of the batch size. */
export function sizeTruth(size: SizeTest, batch: number | null, captured = NOTHING): Truth {
  if (batch === null) return null;
  if (typeof size !== "string") {
    const value = computed(size, batch);
    return value === null ? null : value !== 0;
  }
  const { sizes, least } = captured;
  if (sizes) return size === "one of" ? sizes.includes(batch) : batch <= Math.max(0, ...sizes);
  if (size === "one of") return least.includes(batch) || null;
  return batch <= (least.length ? Math.max(...least) : 1) || null;
}

/** What a phase was settled with last: the truths of its own tests, in words, and the verdict. */
interface Kept {
  atoms: number[];
  truths: string;
  verdict: Verdict;
}

export class Settling {
  readonly side: Side;
  readonly conditions: Conditions;
  readonly #kept = new Map<Phase, Kept>();

  constructor(side: Side) {
    this.side = side;
    this.conditions = new Conditions(side.atoms, side.terms);
  }

  /** The truth of every atom for one phase. */
  truths(phase: Phase, settings: Settings): Truth[] {
    const truths = new Array<Truth>(this.side.atoms.length).fill(null);
    for (const { atom, value } of phase.values) truths[atom] = value;
    // A prefill's batch is not the one that decodes: there a computed test is as it is given.
    const sized = new Set(phase.values.filter(({ source }) => source === "size").map(({ atom }) => atom));
    this.side.atoms.forEach((atom, index) => {
      if (atom.size && (typeof atom.size === "string" || sized.has(index))) truths[index] = sizeTruth(atom.size, settings.batchSize, this.side.launch?.captured);
      const set = settings.truths.get(atom.same);
      if (set !== undefined) truths[index] = set;
    });
    return truths;
  }

  verdict(phase: Phase, settings: Settings): Verdict | "depends" {
    return phase.ends ? this.verdictOf(phase, this.truths(phase, settings)) : phase.verdict;
  }

  /** The verdict under the truth of every atom. */
  verdictOf(phase: Phase, truths: readonly Truth[]): Verdict | "depends" {
    if (!phase.ends) return phase.verdict;
    const { graph, piecewise, eager } = phase.ends;
    const atoms = this.#kept.get(phase)?.atoms ?? [...new Set([graph, piecewise, eager].flatMap((end) => this.conditions.atomsOf(end)))];
    const words = atoms.map((atom) => String(truths[atom] ?? null)).join();
    const kept = this.#kept.get(phase);
    if (kept?.truths === words) return kept.verdict;
    const verdict = this.#settled(phase.ends, truths);
    this.#kept.set(phase, { atoms, truths: words, verdict });
    return verdict;
  }

  #settled({ graph, piecewise, eager }: Ends, truths: readonly Truth[]): Verdict {
    const [replays, pieces, plain] = [graph, piecewise, eager].map((end) => this.conditions.settle(end, truths));
    if (replays === null || pieces === null || plain === null) return "UNKNOWN";
    if (Number(replays) + Number(pieces) + Number(plain) > 1) return "UNKNOWN";
    return replays ? "GRAPH" : pieces ? "PIECEWISE" : plain ? "EAGER" : "NOT_RUN";
  }
}
