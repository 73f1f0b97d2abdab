// Asks Graphviz, in a worker of its own, where nodes and edges lie.
import packed from "packed:layout.ts";
import { inflate } from "./unpack.ts";

/** What Graphviz's json0 holds of a laid out graph; numbers are points, y grows upwards. */
export interface Laid {
  bb: string;
  objects?: { name: string; pos?: string; width?: string; height?: string; bb?: string }[];
  edges?: { id?: string; pos?: string; lp?: string }[];
}

type Answer = { id: number; json?: string; error?: string };

let worker: Promise<Worker> | undefined;
let last = 0;

async function start(): Promise<Worker> {
  const code = new Blob([await inflate(packed)], { type: "text/javascript" });
  return new Worker(URL.createObjectURL(code));
}

/** Lay out DOT text. Rejects with what Graphviz or the browser said. */
export async function layOut(dot: string): Promise<Laid> {
  worker ??= start();
  const running = await worker;
  const id = ++last;
  return new Promise((resolve, reject) => {
    const stop = () => {
      running.removeEventListener("message", hear);
      running.removeEventListener("error", fail);
    };
    const hear = (event: MessageEvent<Answer>) => {
      if (event.data.id !== id) return;
      stop();
      if (event.data.json === undefined) reject(new Error(event.data.error));
      else resolve(JSON.parse(event.data.json) as Laid);
    };
    const fail = (event: ErrorEvent) => {
      stop();
      reject(new Error(event.message || "the browser refused the layout worker"));
    };
    running.addEventListener("message", hear);
    running.addEventListener("error", fail);
    running.postMessage({ id, dot });
  });
}
