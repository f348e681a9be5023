/** `npm run chaos`: lets each fault loose on many callers, and says what they saw. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { machineBlock } from "../kit/machine.ts";
import { monotonicMs } from "../kit/monotonic.ts";
import { Random } from "../kit/random.ts";
import type { Run } from "./caller.ts";
import { FAULTS } from "./faults.ts";
import { type ChaosResults, isKept, type Row, renderTable, rowOf, sumOf } from "./report.ts";
import type { Fault, Stage } from "./scene.ts";
import { ServiceProgram } from "./service.ts";

export interface ChaosInput {
  readonly args: readonly string[];
  readonly distUrl: string;
  /** Where results are kept. */
  readonly resultsFile: string;
}

const DEFAULT_RUNS = 40;
const SHORT_RUNS = 4;
const MAX_RUNS = 100_000;
const DEFAULT_SEED = 1;
/** Of one fault: what hangs ends here, and says so. */
const MINUTES_A_FAULT = 15;
const MAX_NAMED = 5;
const MAX_AT_ONCE = 1000;

const USAGE =
  "Usage: npm run chaos -- [FAULT...] [--runs N] [--at-once N] [--seed N] [--minutes N] [--short] [--write] [--add] [--list]";

/** Returns the exit code: 1 where something promised was lost, or a fault could not be let loose. */
export async function run(input: ChaosInput): Promise<number> {
  const options = readArguments(input.args);
  if (typeof options === "string") {
    console.error(`${options}\n${USAGE}\nFaults: ${FAULTS.map(({ name }) => name).join(", ")}`);
    return 2;
  }
  if (options.isListing) {
    for (const { name, says } of FAULTS) console.log(`${name.padEnd(18)} ${says}`);
    return 0;
  }
  const machine = machineBlock();
  console.log(machine.join("\n"));
  const folder = mkdtempSync(join(tmpdir(), "voicewire-chaos-"));
  const rows: Row[] = [];
  try {
    await using service = await ServiceProgram.start(input.distUrl);
    for (const fault of options.faults) {
      const earlier = options.isAdding ? rowIn(input.resultsFile, fault) : undefined;
      const missing = options.runs - (earlier?.runs ?? 0);
      if (earlier !== undefined && missing <= 0) {
        rows.push(earlier);
        continue;
      }
      const seed = options.seed ?? Math.max(DEFAULT_SEED - 1, ...(earlier?.seeds ?? [])) + 1;
      const stage = { distUrl: input.distUrl, service, folder, random: new Random(seed) };
      const row = await letLoose(fault, stage, { ...options, runs: missing, seed });
      if (row === null) continue;
      rows.push(earlier === undefined ? row : sumOf(earlier, row));
      // At once: a long run may be ended early.
      if (options.isWriting) write(input.resultsFile, { machine, args: input.args, rows });
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  console.log(`\n${renderTable(rows)}`);
  return rows.length === options.faults.length && rows.every(isKept) ? 0 : 1;
}

/** Null where it could not be let loose; why is printed. */
async function letLoose(
  fault: Fault,
  stage: Stage,
  options: Options & { readonly seed: number },
): Promise<Row | null> {
  const missing = fault.missing?.() ?? null;
  if (missing !== null) {
    console.log(`\n== ${fault.name}: left out, ${missing}`);
    return null;
  }
  console.log(`\n== ${fault.name}: ${fault.says}`);
  const runs: Run[] = [];
  const endMs = monotonicMs() + options.minutes * 60_000;
  await using scene = await fault.open(stage);
  while (runs.length < options.runs && monotonicMs() < endMs) {
    // Whole batches, though some of the last may be more than was asked for: a batch of two takes as long.
    const beganMs = monotonicMs();
    const batch = await scene.batch(Math.min(options.atOnce ?? fault.callsAtOnce, options.runs));
    runs.push(...batch);
    const tookSeconds = ((monotonicMs() - beganMs) / 1000).toFixed(0);
    console.log(`  ${runs.length} of ${options.runs} (${batch.length} in ${tookSeconds} s)`);
  }
  if (runs.length < options.runs) console.error(`Only ${runs.length} runs in ${options.minutes} minutes`);
  const bad = runs.filter((run) => isBad(run));
  for (const { session, outcome, shortfalls, falseReceipts, lostWords, doubledWords } of bad.slice(
    0,
    MAX_NAMED,
  )) {
    const why = [...shortfalls, ...falseReceipts, `${lostWords} words lost`, `${doubledWords} twice`];
    console.log(`  ${session} (${outcome}): ${why.join("; ")}`);
  }
  const [slowest] = runs.toSorted((one, other) => (other.wellMs ?? Infinity) - (one.wellMs ?? Infinity));
  if (slowest !== undefined)
    console.log(`  slowest: ${slowest.session} (${slowest.outcome}), ${slowest.wellMs} ms`);
  const row = rowOf(fault.name, runs, options.seed);
  console.log(renderTable([row]));
  return row;
}

function isBad(run: Run): boolean {
  return !isKept(rowOf("", [run], 0));
}

function rowIn(file: string, { name }: Fault): Row | undefined {
  const { rows } = JSON.parse(readFileSync(file, "utf8")) as ChaosResults;
  return rows.find(({ fault }) => fault === name);
}

/** Puts these faults in place of earlier runs of the same ones. */
function write(file: string, results: ChaosResults): void {
  const earlier = JSON.parse(readFileSync(file, "utf8")) as ChaosResults;
  const rows = FAULTS.flatMap(
    ({ name }) =>
      results.rows.find(({ fault }) => fault === name) ??
      earlier.rows.find(({ fault }) => fault === name) ??
      [],
  );
  writeFileSync(file, `${JSON.stringify({ ...results, rows }, null, 2)}\n`);
}

interface Options {
  readonly faults: readonly Fault[];
  readonly runs: number;
  /** null: the first that the fault has not had. */
  readonly seed: number | null;
  /** Callers; null: as many as the fault says. */
  readonly atOnce: number | null;
  readonly minutes: number;
  readonly isShort: boolean;
  readonly isWriting: boolean;
  /** To the runs in the file: those that are missing are made. */
  readonly isAdding: boolean;
  readonly isListing: boolean;
}

function readArguments(args: readonly string[]): Options | string {
  let parsed: ReturnType<typeof parse>;
  try {
    parsed = parse(args);
  } catch (thrown) {
    return thrown instanceof Error ? thrown.message : String(thrown);
  }
  const { values, positionals } = parsed;
  const unknown = positionals.find((name) => !FAULTS.some((fault) => fault.name === name));
  if (unknown !== undefined) return `No such fault: ${unknown}`;
  const runs = Number(values.runs ?? (values.short ? SHORT_RUNS : DEFAULT_RUNS));
  if (!Number.isInteger(runs) || runs < 1 || runs > MAX_RUNS)
    return `--runs is ${values.runs}, expected 1 to ${MAX_RUNS}`;
  const seed = values.seed === undefined ? null : Number(values.seed);
  if (seed !== null && (!Number.isInteger(seed) || seed < 0))
    return `--seed is ${values.seed}, expected a whole number from 0`;
  const atOnce = values["at-once"] === undefined ? null : Number(values["at-once"]);
  if (atOnce !== null && (!Number.isInteger(atOnce) || atOnce < 1 || atOnce > MAX_AT_ONCE))
    return `--at-once is ${values["at-once"]}, expected 1 to ${MAX_AT_ONCE}`;
  const minutes = Number(values.minutes ?? MINUTES_A_FAULT);
  if (!(minutes > 0 && minutes <= 60)) return `--minutes is ${values.minutes}, expected up to 60`;
  if ((values.write || values.add) && values.short)
    return "--write or --add, and --short: a short run shows nothing";
  return {
    faults: positionals.length === 0 ? FAULTS : FAULTS.filter(({ name }) => positionals.includes(name)),
    runs,
    seed,
    atOnce,
    minutes,
    isShort: values.short,
    isWriting: values.write || values.add,
    isAdding: values.add,
    isListing: values.list,
  };
}

function parse(args: readonly string[]) {
  return parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      runs: { type: "string" },
      seed: { type: "string" },
      "at-once": { type: "string" },
      minutes: { type: "string" },
      short: { type: "boolean", default: false },
      write: { type: "boolean", default: false },
      add: { type: "boolean", default: false },
      list: { type: "boolean", default: false },
    },
  });
}
