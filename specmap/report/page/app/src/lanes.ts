// Counting in a long row of codes: how many of each code lie between two cycles.

/** One row of the timeline: a code a cycle, and prefix sums of every code that occurs. */
export class Lane {
  readonly codes: Uint8Array;
  readonly #sums = new Map<number, Uint32Array>();

  constructor(codes: Uint8Array) {
    this.codes = codes;
    for (const code of new Set(codes)) {
      const sums = new Uint32Array(codes.length + 1);
      let sum = 0;
      for (let at = 0; at < codes.length; at++) sums[at + 1] = sum += codes[at] === code ? 1 : 0;
      this.#sums.set(code, sums);
    }
  }

  /** Whether the code occurs at all. */
  has(code: number): boolean {
    return this.#sums.has(code);
  }

  /** How often `code` occurs from `from` up to, not including, `to`. */
  count(code: number, from: number, to: number): number {
    const sums = this.#sums.get(code);
    if (!sums) return 0;
    const last = this.codes.length;
    return (sums[Math.min(Math.max(to, 0), last)] ?? 0) - (sums[Math.min(Math.max(from, 0), last)] ?? 0);
  }

  /** The first index of `code` after (or with step -1 before) `at`, or undefined. */
  next(code: number, at: number, step: 1 | -1): number | undefined {
    for (let index = at + step; index >= 0 && index < this.codes.length; index += step) {
      if (this.codes[index] === code) return index;
    }
    return undefined;
  }
}

/** The range of a histogram; with `log` its bins grow by a factor, else they are equal. */
export interface Range {
  least: number;
  most: number;
  log: boolean;
}

/** Count values in bins over a range; what lies outside is in the first or the last. */
export function bins(values: readonly number[], count: number, { least, most, log }: Range): number[] {
  const scaled = (value: number) => (log ? Math.log(Math.max(value, least)) : value);
  const [low, high] = [scaled(least), scaled(most)];
  const counts = new Array<number>(count).fill(0);
  for (const value of values) {
    const share = high > low ? (scaled(value) - low) / (high - low) : 0;
    const at = Math.min(count - 1, Math.max(0, Math.floor(share * count)));
    counts[at] = (counts[at] ?? 0) + 1;
  }
  return counts;
}

/** The value below which a share of the values lies (nearest rank), or NaN without values. */
export function quantile(sorted: ArrayLike<number>, share: number): number {
  if (!sorted.length) return NaN;
  return sorted[Math.min(sorted.length - 1, Math.max(0, Math.ceil(share * sorted.length) - 1))] ?? NaN;
}
