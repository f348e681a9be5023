// `npm run fuzz -- TARGET... --inputs 1000000 --seed 1`: README.md explains it. Bundles the targets with a counter at
// each branch of src/ into dist/ and hands over to watch.ts. `wire` and `requests` are other kinds: a process as users
// run it, without counters.
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { bundle } from "../../bench/kit/bundle.mjs";
import { countingPlugin } from "./instrument.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const root = dirname(dirname(here));
// Not below it: src/version.ts reads ../package.json.
const outFolder = join(root, "dist");

const KINDS = {
  wire: async (args) => {
    await bundle({ outdir: outFolder, entryPoints: { "fuzz-wire": join(here, "wire/watch-wire.ts") } });
    const { watchWire } = await import(pathToFileURL(join(outFolder, "fuzz-wire.js")).href);
    return await watchWire(args, here);
  },
  requests: async (args) => {
    await bundle({
      outdir: outFolder,
      entryPoints: { "fuzz-requests": join(here, "wire/watch-requests.ts") },
    });
    const { watchRequests } = await import(pathToFileURL(join(outFolder, "fuzz-requests.js")).href);
    return await watchRequests(args, here);
  },
};

async function watchParsers(args) {
  await bundle({
    outdir: outFolder,
    entryPoints: { "fuzz-watch": join(here, "watch.ts"), "fuzz-worker": join(here, "fuzz-worker.ts") },
    plugins: [countingPlugin({ sourceFolder: join(root, "src"), coverageFile: join(here, "coverage.ts") })],
  });
  const { watch } = await import(pathToFileURL(join(outFolder, "fuzz-watch.js")).href);
  return await watch({ args, folder: here, outFolder });
}

const [kind = "", ...rest] = process.argv.slice(2);
const run = Object.hasOwn(KINDS, kind) ? () => KINDS[kind](rest) : () => watchParsers(process.argv.slice(2));
process.exitCode = await run();
