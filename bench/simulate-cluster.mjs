// A cluster that no machine here can hold, as arithmetic: `node bench/simulate-cluster.mjs [--FLAG NUMBER]...`.
// Bundles kit/simulation/ (Node 20 can't run TypeScript) into dist/bench and runs it. docs/capacity.md explains the output.
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { bundle } from "./kit/bundle.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const outfile = join(dirname(here), "dist", "bench", "simulate-cluster.js");

await bundle({
  entryPoints: [join(here, "kit", "simulation", "main.ts")],
  outfile,
});

const { main } = await import(pathToFileURL(outfile).href);
process.exitCode = await main(process.argv.slice(2), pathToFileURL(join(here, "results.json")));
