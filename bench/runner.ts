/** Runs the benches one after the other, each in a process of its own, and prints what they report. */
import { fork } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { loadavg } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import type { BenchOptions, Report, Row } from "./kit/bench.ts";
import { CommitBuild } from "./kit/commit-build.ts";
import { compareBuilds, comparedNames, renderCompared } from "./kit/compare.ts";
import { machineBlock } from "./kit/machine.ts";
import { ndjsonRows } from "./kit/ndjson-rows.ts";
import { type Run, renderResults, renderTable, type Section } from "./kit/results.ts";

/** A bench that takes longer hangs: the longest takes about six minutes. */
const BENCH_DEADLINE_MS = 25 * 60_000;
/** One-minute load average before the start above which others use the machine, too. */
const BUSY_LOAD = 0.5;
/** Reads its input from memory and prints by itself; it does not know of the runner. */
const PLAIN_BENCH = "ndjson";

export interface RunnerInput {
  /** Benches that there are. */
  readonly names: readonly string[];
  readonly args: readonly string[];
  readonly outFolder: string;
  /** Where results.json and results.md are. */
  readonly resultsFolder: string;
}

const USAGE = `Usage: npm run bench -- [NAME...] [--short] [--rounds N] [--minutes N] [--write] [--against DIST] [--profile FOLDER]
       npm run bench -- compare COMMIT COMMIT [NAME...] [--short] [--rounds N]`;

/** Returns the exit code: 0 when every bench ran to its end, whatever it measured. */
export async function run(input: RunnerInput): Promise<number> {
  const parsed = readArguments(input);
  if (typeof parsed === "string") {
    console.error(`${parsed}\n${USAGE}\nBenches: ${input.names.join(", ")}`);
    return 2;
  }
  if (parsed.compared !== null) return await compare(input, parsed.compared, parsed);
  const { names, options, isWriting } = parsed;
  const machine = machineBlock();
  console.log(machine.join("\n"));
  const [loadBefore = 0] = loadavg();
  if (loadBefore > BUSY_LOAD) {
    console.log(
      `\nThe machine is busy (load ${loadBefore.toFixed(2)}): the figures will be worse than they are.`,
    );
  }
  if (options.isShort) console.log("\nShort form: everything runs end to end, the figures mean nothing.");
  const sections: Section[] = [];
  let failures = 0;
  for (const name of names) {
    console.log(`\n== ${name}`);
    const section = await runOne(name, options);
    if (section.failure !== null) {
      failures += 1;
      console.error(`Bench ${name} failed: ${section.failure}`);
    }
    sections.push(section);
  }
  console.log(`\n${renderTable(sections)}`);
  if (isWriting && options.isShort) console.error("Results not written: a short run measures nothing");
  else if (isWriting) {
    const kept = input.args.filter((argument) => argument !== "--write");
    writeResults(
      input,
      sections.map((section) => ({ ...section, machine, args: kept })),
    );
    console.log(`\nWritten: ${join(input.resultsFolder, "results.md")}`);
  }
  return failures === 0 ? 0 : 1;
}

/** Builds both commits, and runs the benches of this checkout with each in turn. */
async function compare(
  { outFolder }: RunnerInput,
  [first, second]: readonly [string, string],
  { names, options }: Parsed,
): Promise<number> {
  const root = join(outFolder, "..", "..");
  console.log(machineBlock().join("\n"));
  try {
    using one = CommitBuild.make(root, first);
    using other = CommitBuild.make(root, second);
    const rows = await compareBuilds(names, options.rounds, (name, build) => {
      const { commit, distUrl } = build === 0 ? one : other;
      console.log(`\n== ${name} of ${commit.slice(0, 12)}`);
      return runOne(name, { ...options, rounds: 1, distUrl });
    });
    console.log(`\n${renderCompared(rows, [first, second])}`);
    return 0;
  } catch (thrown) {
    console.error(thrown instanceof Error ? thrown.message : String(thrown));
    return 1;
  }
}

/** Puts these runs in place of earlier ones of the same benches. What did not run stays. */
function writeResults(input: RunnerInput, runs: readonly Run[]): void {
  const file = join(input.resultsFolder, "results.json");
  const earlier = existsSync(file) ? (JSON.parse(readFileSync(file, "utf8")) as Run[]) : [];
  const all = input.names.flatMap(
    (name) => runs.find((run) => run.name === name) ?? earlier.find((run) => run.name === name) ?? [],
  );
  writeFileSync(file, `${JSON.stringify(all, null, 2)}\n`);
  writeFileSync(join(input.resultsFolder, "results.md"), renderResults(all));
}

interface Parsed {
  readonly names: readonly string[];
  readonly options: BenchOptions;
  readonly isWriting: boolean;
  /** The two commits that are compared; null: this build alone is measured. */
  readonly compared: readonly [string, string] | null;
}

/** The arguments, or what is wrong with them. */
function readArguments(input: RunnerInput): Parsed | string {
  let parsed: ReturnType<typeof parse>;
  try {
    parsed = parse(input.args);
  } catch (thrown) {
    return thrown instanceof Error ? thrown.message : String(thrown);
  }
  const { values, positionals } = parsed;
  const [word, first, second, ...others] = positionals;
  const isComparing = word === "compare";
  if (isComparing && (first === undefined || second === undefined)) return "compare takes two commits";
  const compared =
    first === undefined || second === undefined || !isComparing ? null : ([first, second] as const);
  const named = isComparing ? comparedNames(others, input.names) : positionals;
  if (typeof named === "string") return named;
  const unknown = named.find((name) => !input.names.includes(name));
  if (unknown !== undefined) return `No such bench: ${unknown}`;
  const rounds = Number(values.rounds ?? (values.short ? 1 : 2));
  if (!Number.isInteger(rounds) || rounds < 1 || rounds > 20)
    return `--rounds is ${values.rounds}, expected 1 to 20`;
  const minutes = values.minutes === undefined ? null : Number(values.minutes);
  if (minutes !== null && !(minutes >= 1 && minutes <= 20))
    return `--minutes is ${values.minutes}, expected 1 to 20`;
  if (values.profile !== undefined) mkdirSync(values.profile, { recursive: true });
  return {
    names: named.length > 0 ? named : input.names,
    compared,
    isWriting: values.write,
    options: {
      isShort: values.short,
      rounds,
      minutes,
      outFolder: input.outFolder,
      distUrl: folderUrl(join(input.outFolder, "..")),
      againstUrl: values.against === undefined ? null : folderUrl(values.against),
      profileFolder: values.profile === undefined ? null : resolve(values.profile),
    },
  };
}

function parse(args: readonly string[]) {
  return parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      short: { type: "boolean", default: false },
      write: { type: "boolean", default: false },
      rounds: { type: "string" },
      minutes: { type: "string" },
      against: { type: "string" },
      profile: { type: "string" },
    },
  });
}

function folderUrl(folder: string): string {
  return `${pathToFileURL(resolve(folder)).href}/`;
}

function runOne(name: string, options: BenchOptions): Promise<Section> {
  const isPlain = name === PLAIN_BENCH;
  const child = fork(join(options.outFolder, `${name}.bench.js`), [JSON.stringify(options)], {
    stdio: ["ignore", isPlain ? "pipe" : "inherit", "inherit", "ipc"],
  });
  const rows: Row[] = [];
  const notes: string[] = [];
  const method: string[] = [];
  let output = "";
  child.stdout?.setEncoding("utf8").on("data", (text: string) => {
    output += text;
    process.stdout.write(text);
  });
  child.on("message", (message) => {
    const report = message as Report;
    if (report.type === "method") {
      method.push(...report.lines);
      console.log(`${report.lines.join("\n")}\n`);
    } else if (report.type === "note") {
      notes.push(report.text);
      console.log(`  ${report.text}`);
    } else rows.push(report.row);
  });
  return new Promise((done) => {
    const timer = setTimeout(() => child.kill("SIGTERM"), BENCH_DEADLINE_MS);
    child.once("close", (code, signal) => {
      clearTimeout(timer);
      const failure = code === 0 ? null : `exit code ${code}, signal ${signal}`;
      const { rows: plainRows, method: plainMethod } = isPlain ? ndjsonRows(output) : { rows, method };
      done({ name, method: plainMethod, notes, rows: plainRows, failure });
    });
  });
}
