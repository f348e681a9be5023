/** `voicewire usage`: sums of the ledgers of one or several nodes, and their export. */
import { createReadStream } from "node:fs";
import { resolve } from "node:path";
import { type ReadLine, readLine } from "../../ledger/read-ledger.ts";
import { closedUntilMs, GROUPINGS, type Grouping, UsageSums } from "../../ledger/usage-sums.ts";
import { EXIT, usageError } from "../exit.ts";
import { type Flag, type ParsedArguments, parseArguments } from "../flags.ts";
import type { CommandModule } from "../help.ts";
import type { Io } from "../io.ts";
import { FORMATS, type Format, isBillable, write } from "./usage-formats.ts";

const DEFAULT_METER = "voicewire_characters";
/** Stripe's bound. */
const MAX_METER_CHARS = 100;
const DEFAULT_BY: readonly Grouping[] = ["tenant", "key"];
/** What an hour is exported for. */
const EXPORT_BY: readonly Grouping[] = ["hour", "tenant", "node"];
const EXPORTS: ReadonlySet<Format> = new Set(["stripe", "cloudevents"]);
/** A line without an end is none of ours: it is not kept whole. */
const MAX_LINE_CHARS = 128 * 1024;

const FLAGS: readonly Flag[] = [
  { name: "from", value: "TIME", about: "From this time on, e.g. 2027-01-31 or 2027-01-31T12:00:00Z" },
  { name: "to", value: "TIME", about: "Before this time" },
  {
    name: "by",
    value: "FIELDS",
    about: `Sums of what has these in common, with commas: ${GROUPINGS.join(", ")}. Default: tenant,key`,
  },
  { name: "format", value: "FORMAT", about: `${FORMATS.join(", ")}. Default: table` },
  {
    name: "hour",
    value: "closed",
    about:
      "Whole hours to which nothing is added any more, each with an id that is the same whenever it is exported again; stripe and cloudevents are always so",
  },
  {
    name: "meter",
    value: "NAME",
    about: `Of what the sums are, for stripe and ids. Default: ${DEFAULT_METER}`,
  },
];

export const usage: CommandModule = {
  help: {
    name: "usage",
    usage: ["usage FILE... [FLAGS]"],
    about:
      "What speech has cost, by the ledgers that gateways write (serve --ledger FILE), of one node or several. Characters " +
      "are those that the upstream has billed; where it has not said that, those that were sent: `counted` is their share. " +
      "`unknown` are requests of which neither is known. Damaged lines are passed over, and said.",
    flags: FLAGS,
    examples: [
      { line: "voicewire usage usage.jsonl", about: "by tenant and key" },
      {
        line: "voicewire usage a.jsonl b.jsonl --from 2027-01-01 --to 2027-02-01 --by tenant,model",
        about: "January, of two nodes",
      },
      {
        line: "voicewire usage usage.jsonl --hour closed --format csv",
        about: "hours that are over; run it again and again, by id nothing counts twice",
      },
    ],
  },
  run: runUsage,
};

interface Plan {
  readonly files: readonly string[];
  readonly fromMs: number;
  readonly toMs: number;
  readonly by: readonly Grouping[];
  readonly format: Format;
  readonly meter: string;
  readonly isExport: boolean;
}

interface Passed {
  damaged: number;
}

async function runUsage(io: Io, args: readonly string[]): Promise<number> {
  const plan = planOf(parseArguments(args, FLAGS), Date.now());
  const sums = new UsageSums(plan.by);
  for (const file of plan.files) {
    const passed: Passed = { damaged: 0 };
    for await (const line of linesOf(file, passed)) {
      if (line.atMs >= plan.fromMs && line.atMs < plan.toMs) sums.add(line);
    }
    if (passed.damaged > 0) {
      const what = passed.damaged === 1 ? "1 damaged line was" : `${passed.damaged} damaged lines were`;
      io.stderr.write(`voicewire: ${file}: ${what} passed over\n`);
    }
  }
  const rows = sums.rows();
  const unknown = rows.reduce((sum, row) => sum + row.unknown, 0);
  if (unknown > 0) {
    io.stderr.write(`voicewire: of ${unknown} requests nobody knows the characters: they are in no sum\n`);
  }
  const unbilled = plan.format === "stripe" ? rows.filter((row) => !isBillable(row)).length : 0;
  if (unbilled > 0)
    io.stderr.write(`voicewire: ${unbilled} rows without a tenant or characters were left out\n`);
  io.stdout.write(write(plan.format, rows, plan));
  return EXIT.ok;
}

/** Throws invalid_config. */
function planOf(parsed: ParsedArguments, nowMs: number): Plan {
  const files = [...new Set(parsed.positionals.map((file) => resolve(file)))];
  if (files.length === 0) throw usageError("No ledger: expected voicewire usage FILE...", "file");
  const format = choiceOf(parsed.text("format") ?? "table", FORMATS, "format");
  const hour = parsed.text("hour");
  if (hour !== undefined && hour !== "closed")
    throw usageError(`Flag --hour: "${hour}", expected closed`, "hour");
  const isExport = hour !== undefined || EXPORTS.has(format);
  const named = parsed
    .text("by")
    ?.split(",")
    .map((field) => choiceOf(field.trim(), GROUPINGS, "by"));
  const by = isExport ? [...EXPORT_BY, ...(named ?? [])] : (named ?? DEFAULT_BY);
  const toMs = timeOf(parsed.text("to"), "to") ?? Number.POSITIVE_INFINITY;
  const meter = parsed.text("meter") ?? DEFAULT_METER;
  if (meter === "" || meter.length > MAX_METER_CHARS) {
    throw usageError(`Flag --meter: expected 1 to ${MAX_METER_CHARS} characters`, "meter");
  }
  const fromMs = timeOf(parsed.text("from"), "from") ?? Number.NEGATIVE_INFINITY;
  if (isExport) mustBeHours({ from: fromMs, to: toMs });
  return {
    files,
    fromMs,
    toMs: isExport ? Math.min(toMs, closedUntilMs(nowMs)) : toMs,
    by: [...new Set(by)],
    format,
    meter,
    isExport,
  };
}

/** A part of an hour would have the id of the whole one. */
function mustBeHours(times: Readonly<Record<string, number>>): void {
  for (const [flag, ms] of Object.entries(times)) {
    if (!Number.isFinite(ms) || ms % 3_600_000 === 0) continue;
    throw usageError(`Flag --${flag}: expected a whole hour, since hours are exported`, flag);
  }
}

function choiceOf<T extends string>(text: string, choices: readonly T[], flag: string): T {
  const choice = choices.find((candidate) => candidate === text);
  if (choice !== undefined) return choice;
  throw usageError(`Flag --${flag}: "${text}", expected ${choices.join(", ")}`, flag);
}

function timeOf(text: string | undefined, flag: string): number | undefined {
  if (text === undefined) return undefined;
  const ms = /^\d{4}-\d\d-\d\d(T.*(Z|[+-]\d\d:\d\d))?$/.test(text) ? Date.parse(text) : Number.NaN;
  if (!Number.isNaN(ms)) return ms;
  throw usageError(
    `Flag --${flag}: "${text}", expected a time such as 2027-01-31 or 2027-01-31T12:00:00Z`,
    flag,
  );
}

/** Throws invalid_config where the file can't be read, or a later version wrote it. */
async function* linesOf(file: string, passed: Passed): AsyncGenerator<ReadLine> {
  let rest = "";
  let lastId = "";
  try {
    for await (const piece of createReadStream(file, "utf8")) {
      const lines = (rest + String(piece)).split("\n");
      rest = (lines.pop() ?? "").slice(0, MAX_LINE_CHARS);
      for (const text of lines) {
        const line = text === "" ? null : readLine(text);
        if (line === null && text !== "") passed.damaged += 1;
        // Torn off just before its end, a line is written again.
        if (line !== null && line.id !== lastId) yield line;
        lastId = line?.id ?? lastId;
      }
    }
  } catch (thrown) {
    if (thrown instanceof Error && "syscall" in thrown)
      throw usageError(`The ledger can't be read: ${thrown.message}`);
    throw thrown;
  }
  // A whole one without an end is still being written.
  if (rest !== "") passed.damaged += 1;
}
