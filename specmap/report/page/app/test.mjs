// Builds test/*.test.ts and runs them with Node's own test runner. Given a folder of vectors, it
// runs test/*.check.ts on that instead.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const made = mkdtempSync(join(tmpdir(), "specmap-page-"));
const [, , vectors] = process.argv;
const tests = readdirSync(join(here, "test")).filter((name) => name.endsWith(vectors ? ".check.ts" : ".test.ts"));
try {
  await build({
    entryPoints: tests.map((name) => join(here, "test", name)),
    outdir: made,
    outExtension: { ".js": ".mjs" },
    bundle: true,
    platform: "node",
    format: "esm",
    jsx: "automatic",
    jsxImportSource: "preact",
    logLevel: "error",
  });
  const files = readdirSync(made).map((name) => join(made, name));
  const env = vectors ? { ...process.env, SPECMAP_VECTORS: vectors } : process.env;
  process.exitCode = spawnSync(process.execPath, ["--test", ...files], { stdio: "inherit", env }).status ?? 1;
} finally {
  rmSync(made, { recursive: true });
}
