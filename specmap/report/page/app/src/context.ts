// What all sections share: the side that is shown, what belongs to it, and what was picked last.
import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { Page, PhaseName, Place, Side, Worker } from "./data.ts";
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

/** The worker that people look at first: the one that ran, runs, or may run; else the first with phases. */
export function firstWorker(side: Side): number {
  const best = (test: (worker: Worker) => boolean) => side.workers.findIndex((w) => w.phases.length > 0 && test(w));
  const found = [best(ran), best((w) => w.selection === "runs"), best((w) => w.selection === "may run"), best(() => true)];
  return found.find((index) => index >= 0) ?? 0;
}
