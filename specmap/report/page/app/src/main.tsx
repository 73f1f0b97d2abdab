// The page: unpack the data, then show it.
import { render } from "preact";
import { App } from "./app.tsx";
import { applyTheme, storedTheme } from "./theme.ts";
import { inflate, split } from "./unpack.ts";

async function start(root: HTMLElement): Promise<void> {
  const data = document.getElementById("specmap-data")?.textContent ?? "";
  const { page, columns } = split(await inflate(data));
  if (page.schema !== 1) throw new Error(`the data has schema ${String(page.schema)}, this page reads 1`);
  render(<App page={page} columns={columns} />, root);
  root.dataset["ready"] = "true";
  requestAnimationFrame(() => performance.mark("specmap-ready")); // benchmarks/page_ready.py reads it
}

applyTheme(storedTheme());
const root = document.getElementById("specmap-page");
if (root) {
  start(root).catch((error: unknown) => {
    root.textContent = `This page could not be shown: ${String(error)}. It needs a browser from 2023 or newer.`;
    throw error;
  });
}
