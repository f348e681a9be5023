// `npm run chaos`: bundles bench/chaos (Node 20 can't run TypeScript) into dist/bench and hands over to main.ts. It expects
// dist/ to be built; README.md explains the arguments.
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { bundle } from "./kit/bundle.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const dist = join(dirname(here), "dist");
const outFile = join(dist, "bench", "chaos.js");

if (!existsSync(join(dist, "main.js"))) {
  console.error("Chaos can't start: dist/main.js is missing, expected a build (npm run build)");
  process.exit(1);
}
await bundle({
  entryPoints: [join(here, "chaos", "main.ts")],
  outfile: outFile,
});
const { run } = await import(pathToFileURL(outFile).href);
process.exitCode = await run({
  args: process.argv.slice(2),
  distUrl: `${pathToFileURL(dist).href}/`,
  resultsFile: join(here, "chaos-results.json"),
});
