// Builds ../bundle, or the folder that is named: page.js (a classic script), page.css and
// SOURCES.json (hashes of what they were built from). Graphviz travels inside page.js as gzip in
// base64; the page unpacks it into a worker when the graph is first looked at.
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const bundle = process.argv[2] ?? join(here, "..", "bundle");
const options = { bundle: true, write: false, minify: true, target: "es2022", legalComments: "none" };

async function script(entry, plugins = []) {
  const made = await build({
    ...options,
    entryPoints: [join(here, "src", entry)],
    format: "iife",
    jsx: "automatic",
    jsxImportSource: "preact",
    charset: "utf8",
    plugins,
  });
  return made.outputFiles[0].text;
}

/** `import packed from "packed:layout.ts"`: that script, built, as gzip in base64. */
const packed = {
  name: "packed",
  setup(it) {
    it.onResolve({ filter: /^packed:/ }, (found) => ({ path: found.path.slice(7), namespace: "packed" }));
    it.onLoad({ filter: /.*/, namespace: "packed" }, async (found) => ({
      contents: `export default ${JSON.stringify(zipped(await script(found.path)))}`,
    }));
  },
};

function zipped(text) {
  const bytes = gzipSync(text, { level: 9 });
  bytes[9] = 255; // the byte that names the operating system: the same bytes everywhere
  return bytes.toString("base64");
}

function sources() {
  const below = (folder) =>
    readdirSync(folder, { withFileTypes: true }).flatMap((entry) =>
      entry.isDirectory() ? below(join(folder, entry.name)) : [join(folder, entry.name)],
    );
  const kept = ["build.mjs", "package.json", "package-lock.json", "tsconfig.json"];
  const files = [...below(join(here, "src")), ...kept.map((name) => join(here, name))];
  const hashes = files.map((path) => [
    relative(here, path).split(sep).join("/"),
    createHash("sha256").update(readFileSync(path)).digest("hex"),
  ]);
  return Object.fromEntries(hashes.sort(([a], [b]) => (a < b ? -1 : 1)));
}

mkdirSync(bundle, { recursive: true });
writeFileSync(join(bundle, "page.js"), await script("main.tsx", [packed]));
const style = await build({ ...options, entryPoints: [join(here, "src", "page.css")] });
writeFileSync(join(bundle, "page.css"), style.outputFiles[0].text);
writeFileSync(join(bundle, "SOURCES.json"), JSON.stringify({ files: sources() }, null, 1) + "\n");
