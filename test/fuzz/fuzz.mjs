// `npm run fuzz -- TARGET... --inputs 1000000 --seed 1`: README.md explains it. Bundles the targets with a counter at
// each branch of src/ into dist/ and hands over to watch.ts.
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build } from "esbuild";
import { countingPlugin } from "./instrument.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const root = dirname(dirname(here));
// Not below it: src/version.ts reads ../package.json.
const outFolder = join(root, "dist");

await build({
  entryPoints: { "fuzz-watch": join(here, "watch.ts"), "fuzz-worker": join(here, "fuzz-worker.ts") },
  outdir: outFolder,
  bundle: true,
  platform: "node",
  target: "node20",
  format: "esm",
  packages: "external",
  sourcemap: "inline",
  logLevel: "warning",
  plugins: [countingPlugin({ sourceFolder: join(root, "src"), coverageFile: join(here, "coverage.ts") })],
});

const { watch } = await import(pathToFileURL(join(outFolder, "fuzz-watch.js")).href);
process.exitCode = await watch({ args: process.argv.slice(2), folder: here, outFolder });
