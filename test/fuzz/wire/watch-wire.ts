/** `npm run fuzz -- wire [SURFACE...]`: each surface of a gateway process that is started for it. */
import { join } from "node:path";
import { parseArgs } from "node:util";
import { startFuzzedGateway } from "./fuzzed-gateway.ts";
import { startQuickUpstream } from "./quick-upstream.ts";
import { runSurface, type SurfaceReport } from "./surface-run.ts";
import { surfacesOf } from "./surfaces.ts";
import { writeTableRow } from "./wire-results.ts";

const AT_ONCE = "64";

/** The process's exit code: 0 where every surface held. `folder`: test/fuzz. */
export async function watchWire(args: readonly string[], folder: string): Promise<number> {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      inputs: { type: "string", default: "1000000" },
      seed: { type: "string", default: "1" },
      minutes: { type: "string", default: "Infinity" },
      "at-once": { type: "string", default: AT_ONCE },
      list: { type: "boolean", default: false },
    },
  });
  const surfaces = surfacesOf(folder);
  const inputs = Number(values.inputs);
  const seed = Number(values.seed);
  const maxSeconds = Number(values.minutes) * 60;
  const atOnce = Number(values["at-once"]);
  const isBad =
    !Number.isSafeInteger(inputs) || !Number.isSafeInteger(seed) || !(maxSeconds > 0) || !(atOnce > 0);
  if (values.list || isBad || positionals.some((name) => surfaces[name] === undefined)) {
    console.log(
      "npm run fuzz -- wire [SURFACE...] [--inputs 1000000] [--minutes 10] [--seed 1] [--at-once 64]\n" +
        Object.keys(surfaces).join("\n"),
    );
    return values.list ? 0 : 2;
  }
  let broken = 0;
  for (const name of positionals.length > 0 ? positionals : Object.keys(surfaces)) {
    const surface = surfaces[name];
    if (surface === undefined) continue;
    await using upstream = await startQuickUpstream();
    await using gateway = await startFuzzedGateway({
      main: join(folder, "../../dist/main.js"),
      upstreamUrl: upstream.url,
    });
    const report = await runSurface(gateway, { name, surface, inputs, seed, maxSeconds, atOnce });
    console.log(lineOf(report));
    if (report.faults.length > 0) {
      broken += 1;
      console.error(`${name}: BROKEN\n${report.faults.join("\n")}`);
    } else {
      writeTableRow(join(folder, "wire/results.md"), report);
    }
  }
  return broken === 0 ? 0 : 1;
}

function lineOf(report: SurfaceReport): string {
  const rate = Math.round(report.inputs / report.seconds);
  return (
    `${report.name}: ${report.inputs} messages, ${report.connections} connections, ${rate}/s, heap ` +
    `${report.heapBeforeMb} -> ${report.heapAfterMb} MB, files ${report.filesBefore} -> ${report.filesAfter}, neighbour ` +
    `heard ${report.heard}, closes ${JSON.stringify(report.closes)}, errors ${JSON.stringify(report.errors)}`
  );
}
