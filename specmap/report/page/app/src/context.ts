// What all sections share: the side that is shown, what belongs to it, and what was picked last.
import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { Page, Phase, PhaseName, Place, Side, Worker } from "./data.ts";
import type { Settling } from "./settling.ts";
import type { Columns } from "./unpack.ts";

/** A worker and a phase that a click asked for; -1 stands for all. */
export interface Pick {
  worker: number;
  phase: PhaseName | "";
}

export interface Shared {
  page: Page;
  columns: Columns;
  side: Side;
  settling: Settling;
  pick: Pick;
  /** Pick, and scroll to the section with this id; "" stays where it is. */
  go: (pick: Pick, section: string) => void;
}

export const SharedContext = createContext<Shared | undefined>(undefined);

export function useShared(): Shared {
  const shared = useContext(SharedContext);
  if (!shared) throw new Error("a section stands outside the page");
  return shared;
}

const roots = new WeakMap<Side, string>();

/** The folder, with its last slash, that all files of a side stand in. */
export function rootOf(side: Side): string {
  let root = roots.get(side);
  if (root === undefined) {
    const files = Object.keys(side.sources);
    root = files[0]?.replace(/[^/]*$/, "") ?? "";
    for (const file of files) while (!file.startsWith(root)) root = root.replace(/[^/]*\/$/, "");
    roots.set(side, root);
  }
  return root;
}

/** `file:line`, the file below the root of the side. */
export function placeText(side: Side, place: Place | null): string {
  if (!place) return "";
  const root = rootOf(side);
  return `${place.file.startsWith(root) ? place.file.slice(root.length) : place.file}:${place.line}`;
}

/** Whether the recorded run has passes of a worker. */
export function ran(worker: Worker): boolean {
  return worker.phases.some(({ observed }) => observed !== null && observed.word !== "not exercised");
}

/** How a phase can end, the worst first. */
export const WORST = ["EAGER", "mixed", "PARTIAL", "UNKNOWN", "depends", "PIECEWISE", "GRAPH", "CAPTURE", "NOT_RUN", "not exercised", ""];

/** What people look at first: the worker that runs, and the worst of its cycle; of those as bad the longest, then verify. */
export function firstPick(page: Page, side: Side | undefined): Pick {
  if (!side) return { worker: 0, phase: "" };
  const worker = firstWorker(side);
  const found = side.workers[worker]?.phases.filter(({ name, arms }) => page.cycle.includes(name) && arms.length > 0) ?? [];
  const word = ({ verdict, observed }: Phase) => (observed && observed.word !== "not exercised" ? observed.word : verdict);
  const order = (phase: Phase) => [WORST.indexOf(word(phase)), -(phase.observed?.share ?? 0), Number(phase.name !== "verify")];
  const before = (a: Phase, b: Phase) => order(a).map((one, at) => one - (order(b)[at] ?? 0)).find(Boolean) ?? 0;
  return { worker, phase: [...found].sort(before)[0]?.name ?? "" };
}

/** The worker that people look at first: the one that ran, runs, or may run; else the first with phases. */
function firstWorker(side: Side): number {
  const best = (test: (worker: Worker) => boolean) => side.workers.findIndex((w) => w.phases.length > 0 && test(w));
  const found = [best(ran), best((w) => w.selection === "runs"), best((w) => w.selection === "may run"), best(() => true)];
  return found.find((index) => index >= 0) ?? 0;
}
