// `npm run bench`: bundles the benches (Node 20 can't run TypeScript) into dist/bench and hands over to runner.ts.
// It expects dist/ to be built; README.md explains the arguments.
import { existsSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { bundle } from "./kit/bundle.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const root = dirname(here);
const outFolder = join(root, "dist", "bench");

if (!existsSync(join(root, "dist", "gateway.js"))) {
  console.error("Bench can't start: dist/gateway.js is missing, expected a build (npm run build)");
  process.exit(1);
}

/** TypeScript files of a folder of bench/ that match. */
function sources(folder, pattern) {
  return readdirSync(join(here, folder))
    .filter((name) => pattern.test(name))
    .map((name) => join(here, folder, name));
}

const benches = sources(".", /\.bench\.ts$/);
await bundle({
  entryPoints: [...benches, ...sources("fixtures", /\.ts$/), join(here, "runner.ts")],
  outdir: outFolder,
  outbase: here,
});

const { run } = await import(pathToFileURL(join(outFolder, "runner.js")).href);
process.exitCode = await run({
  names: benches.map((path) => path.slice(here.length + 1, -".bench.ts".length)),
  args: process.argv.slice(2),
  outFolder,
  resultsFolder: here,
});
