// Runs in a worker: DOT text in, Graphviz's JSON with positions out.
import { instance } from "@viz-js/viz";

const ready = instance();

addEventListener("message", async (event: MessageEvent<{ id: number; dot: string }>) => {
  const { id, dot } = event.data;
  try {
    const viz = await ready;
    postMessage({ id, json: viz.renderString(dot, { format: "json0", engine: "dot" }) });
  } catch (error) {
    postMessage({ id, error: String(error) });
  }
});
