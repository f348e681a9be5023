// `npm run fuzz -- TARGET... --inputs 1000000 --seed 1`: README.md explains it. Bundles the targets with a counter at
// each branch of src/ into dist/fuzz and hands over to watch.ts.
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build } from "esbuild";
import { countingPlugin } from "./instrument.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const root = dirname(dirname(here));
const outFolder = join(root, "dist", "fuzz");

await build({
  entryPoints: [join(here, "watch.ts"), join(here, "fuzz-worker.ts")],
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

const { watch } = await import(pathToFileURL(join(outFolder, "watch.js")).href);
process.exitCode = await watch({ args: process.argv.slice(2), folder: here, outFolder });
