/** `npm run fuzz -- wire [SURFACE...]`: each surface of a gateway process that is started for it. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { ConnectionScript, type Selection } from "./connection-script.ts";
import { startFuzzedGateway } from "./fuzzed-gateway.ts";
import { narrowed, type Trial } from "./narrow.ts";
import { startQuickUpstream } from "./quick-upstream.ts";
import { ResultsFile } from "./results-file.ts";
import { runSurface, type SurfaceReport } from "./surface-run.ts";
import { type Surface, surfacesOf } from "./surfaces.ts";
import { tryAgain } from "./trial.ts";
import { sumOfWire, type WireRow, wireRow, wireTable } from "./wire-results.ts";

const AT_ONCE = "64";
const MAX_SHOWN_CHARS = 600;

/** The process's exit code: 0 where every surface held. `folder`: test/fuzz. */
export async function watchWire(args: readonly string[], folder: string): Promise<number> {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      inputs: { type: "string", default: "1000000" },
      seed: { type: "string" },
      minutes: { type: "string", default: "Infinity" },
      "at-once": { type: "string", default: AT_ONCE },
      connection: { type: "string" },
      list: { type: "boolean", default: false },
    },
  });
  const surfaces = surfacesOf(folder);
  const inputs = Number(values.inputs);
  const results = new ResultsFile<WireRow>(join(folder, "wire/results.json"));
  const maxSeconds = Number(values.minutes) * 60;
  const atOnce = Number(values["at-once"]);
  const isBad =
    [inputs, Number(values.seed ?? 1), atOnce].some((number) => !Number.isSafeInteger(number)) ||
    !(maxSeconds > 0 && atOnce > 0) ||
    (values.connection !== undefined && !Number.isSafeInteger(Number(values.connection)));
  if (values.list || isBad || positionals.some((name) => surfaces[name] === undefined)) {
    console.log(
      "npm run fuzz -- wire [SURFACE...] [--inputs 1000000] [--minutes 10] [--seed N] [--at-once 64] " +
        "[--connection NUMBER]\n" +
        Object.keys(surfaces).join("\n"),
    );
    return values.list ? 0 : 2;
  }
  let broken = 0;
  for (const name of positionals.length > 0 ? positionals : Object.keys(surfaces)) {
    const surface = surfaces[name];
    if (surface === undefined) continue;
    const seed = values.seed === undefined ? results.newSeed(name) : Number(values.seed);
    const place = { main: join(folder, "../../dist/main.js"), name, surface, seed, atOnce };
    if (values.connection !== undefined) {
      const { isBroken } = await onNewGateway(place, [
        { connection: Number(values.connection), messages: null },
      ]);
      console.log(`${name}: connection ${values.connection} ${isBroken ? "breaks it" : "does not break it"}`);
      if (isBroken) broken += 1;
      continue;
    }
    const report = await runNew(place, { inputs, maxSeconds });
    console.log(lineOf(report));
    if (report.faults.length > 0) {
      broken += 1;
      console.error(`${name}: BROKEN\n${report.faults.join("\n")}`);
      console.error(await culpritOf(place, report.suspects));
    } else {
      results.add(wireRow(report, seed), sumOfWire);
      writeFileSync(join(folder, "wire/results.md"), wireTable(results.rows));
    }
  }
  return broken === 0 ? 0 : 1;
}

interface Place {
  /** The built program. */
  readonly main: string;
  readonly name: string;
  readonly surface: Surface;
  readonly seed: number;
  readonly atOnce: number;
}

async function runNew(
  { main, ...place }: Place,
  bounds: { readonly inputs: number; readonly maxSeconds: number },
): Promise<SurfaceReport> {
  await using upstream = await startQuickUpstream();
  await using gateway = await startFuzzedGateway({ main, upstreamUrl: upstream.url });
  return await runSurface(gateway, { ...place, ...bounds });
}

async function onNewGateway({ main, ...place }: Place, selections: readonly Selection[]): Promise<Trial> {
  await using upstream = await startQuickUpstream();
  await using gateway = await startFuzzedGateway({ main, upstreamUrl: upstream.url });
  return await tryAgain({ gateway, ...place }, selections);
}

/** The messages that break the surface, and how to send them again. */
async function culpritOf(place: Place, suspects: readonly number[]): Promise<string> {
  console.log(`${place.name}: ${suspects.length} connections are sent again, fewer each time`);
  const found = await narrowed({ suspects, tried: (some) => onNewGateway(place, some) });
  if (found === null) return "It does not break again by the connections of its last lot alone.";
  const [first] = found;
  if (first === undefined || found.length > 1)
    return `It breaks by these connections together: ${found.map(({ connection }) => connection).join(", ")}`;
  const { connection, messages } = first;
  const sent = messagesOf(place, connection, messages ?? []);
  return [
    `It breaks by connection ${connection} (--seed ${place.seed} --connection ${connection}), messages:`,
    ...sent.map((bytes) => JSON.stringify(bytes.toString("latin1").slice(0, MAX_SHOWN_CHARS))),
  ].join("\n");
}

/** Without their frames. */
function messagesOf({ surface, seed }: Place, connection: number, messages: readonly number[]): Buffer[] {
  const script = new ConnectionScript(surface, seed, { connection, messages });
  const found: Buffer[] = [];
  while (found.length < messages.length && script.count <= (messages.at(-1) ?? 0))
    found.push(
      ...(surface.transport === "websocket" ? script.frames().map(({ meant }) => meant) : script.messages()),
    );
  return found;
}

function lineOf(report: SurfaceReport): string {
  const rate = Math.round(report.inputs / report.seconds);
  return (
    `${report.name}: ${report.inputs} messages, ${report.connections} connections, ${rate}/s, heap ` +
    `${report.heapBeforeMb} -> ${report.heapAfterMb} MB, files ${report.filesBefore} -> ${report.filesAfter}, neighbour ` +
    `heard ${report.heard}, closes ${JSON.stringify(report.closes)}, errors ${JSON.stringify(report.errors)}`
  );
}
