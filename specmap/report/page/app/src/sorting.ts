// Sorting and filtering the phase table.
import type { Phase, Side, Worker } from "./data.ts";
import { WORST, placeText, ran } from "./context.ts";

export interface Row {
  worker: Worker;
  /** Index of the worker, and of the phase in it. */
  at: number;
  index: number;
  phase: Phase;
}

export type Column = "worker" | "phase" | "static" | "observed" | "reason" | "place" | "share";

export interface Filter {
  /** Index of a worker as text, "" for those that may run, "*" for all. */
  worker: string;
  phase: string;
  words: string;
}

/** Whether the worker ran; where none did, whether the launch, if there is one, leaves it in question. */
export function mayRun(side: Side, worker: Worker): boolean {
  if (ran(worker)) return true;
  return worker.selection === "open" ? !side.workers.some(ran) : worker.selection !== "not run";
}

export function rows(side: Side, filter: Filter): Row[] {
  const words = filter.words.toLowerCase().split(/\s+/).filter(Boolean);
  return side.workers
    .flatMap((worker, at) => worker.phases.map((phase, index) => ({ worker, at, index, phase })))
    .filter(({ worker, at, phase }) => {
      if (filter.worker === "" ? !mayRun(side, worker) : filter.worker !== "*" && String(at) !== filter.worker) return false;
      if (filter.phase && phase.name !== filter.phase) return false;
      const text = [worker.name, phase.name, phase.verdict, phase.observed?.word, phase.reason, placeText(side, placeOf(phase))];
      const low = text.join(" ").toLowerCase();
      return words.every((word) => low.includes(word));
    });
}

/** Where the reason stands, else where the phase does. */
export function placeOf(phase: Phase) {
  return phase.evidence ?? phase.place;
}

/** Sort by a column; rows that are equal there keep the order of the map. */
export function sorted(side: Side, found: readonly Row[], column: Column | "", descending: boolean): Row[] {
  if (!column) return [...found];
  const key = (row: Row): string | number => {
    const { phase } = row;
    if (column === "worker") return row.worker.name;
    if (column === "phase") return phase.name;
    if (column === "static") return WORST.indexOf(phase.verdict);
    if (column === "observed") return WORST.indexOf(phase.observed?.word ?? "");
    if (column === "reason") return phase.reason;
    if (column === "place") return placeText(side, placeOf(phase));
    return -(phase.observed?.share ?? -1);
  };
  const sign = descending ? -1 : 1;
  const compare = (a: string | number, b: string | number) =>
    typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en");
  return [...found].sort((a, b) => sign * compare(key(a), key(b)));
}
