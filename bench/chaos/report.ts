/** What many runs of one fault came to, and the page that says so. */
import { percentile } from "../kit/statistics.ts";
import type { Run } from "./caller.ts";
import { INTERRUPTED } from "./verdict.ts";

export interface Row {
  readonly fault: string;
  readonly runs: number;
  readonly whole: number;
  /** By the caller's own `interrupt`. */
  readonly interrupted: number;
  /** Runs by what else the client was told: `gap`, or a code. */
  readonly told: Readonly<Record<string, number>>;
  readonly lostWords: number;
  readonly doubledWords: number;
  readonly shortfalls: number;
  readonly falseReceipts: number;
  /** Runs of the series that the next two are of: the largest one, and not the one of the busiest machine. */
  readonly wellRuns: number;
  /** Until speech came again; null: never in the worst of these, in any series. */
  readonly wellP50Ms: number | null;
  readonly wellP99Ms: number | null;
  /** Each series has its own: the same one would make the same runs. */
  readonly seeds: readonly number[];
}

export interface ChaosResults {
  readonly machine: readonly string[];
  readonly args: readonly string[];
  readonly rows: readonly Row[];
}

export function rowOf(fault: string, runs: readonly Run[], seed: number): Row {
  const told: Record<string, number> = {};
  for (const { outcome } of runs)
    if (outcome !== "whole" && outcome !== INTERRUPTED) told[outcome] = (told[outcome] ?? 0) + 1;
  const waits = runs.map(({ wellMs }) => wellMs ?? Number.POSITIVE_INFINITY);
  const sum = (of: (run: Run) => number): number => runs.reduce((total, run) => total + of(run), 0);
  return {
    fault,
    runs: runs.length,
    whole: runs.filter(({ outcome }) => outcome === "whole").length,
    interrupted: runs.filter(({ outcome }) => outcome === INTERRUPTED).length,
    told: sorted(told),
    lostWords: sum(({ lostWords }) => lostWords),
    doubledWords: sum(({ doubledWords }) => doubledWords),
    shortfalls: runs.filter(({ shortfalls }) => shortfalls.length > 0).length,
    falseReceipts: runs.filter(({ falseReceipts }) => falseReceipts.length > 0).length,
    wellRuns: runs.length,
    wellP50Ms: finite(percentile(waits, 0.5)),
    wellP99Ms: finite(percentile(waits, 0.99)),
    seeds: [seed],
  };
}

/** Two series of the same fault. */
export function sumOf(one: Row, other: Row): Row {
  const told: Record<string, number> = { ...one.told };
  const larger = other.wellRuns > one.wellRuns ? other : one;
  for (const [code, count] of Object.entries(other.told)) told[code] = (told[code] ?? 0) + count;
  return {
    fault: one.fault,
    runs: one.runs + other.runs,
    whole: one.whole + other.whole,
    interrupted: one.interrupted + other.interrupted,
    told: sorted(told),
    lostWords: one.lostWords + other.lostWords,
    doubledWords: one.doubledWords + other.doubledWords,
    shortfalls: one.shortfalls + other.shortfalls,
    falseReceipts: one.falseReceipts + other.falseReceipts,
    wellRuns: larger.wellRuns,
    wellP50Ms: larger.wellP50Ms,
    wellP99Ms: one.wellP99Ms === null || other.wellP99Ms === null ? null : larger.wellP99Ms,
    seeds: [...one.seeds, ...other.seeds],
  };
}

function sorted(told: Readonly<Record<string, number>>): Record<string, number> {
  return Object.fromEntries(Object.entries(told).sort(([one], [other]) => (one < other ? -1 : 1)));
}

/** Whether all that was promised was kept. */
export function isKept({ lostWords, doubledWords, shortfalls, falseReceipts, wellP99Ms }: Row): boolean {
  return lostWords + doubledWords + shortfalls + falseReceipts === 0 && wellP99Ms !== null;
}

const HEADS = [
  "fault",
  "runs",
  "whole",
  "interrupted",
  "told otherwise",
  "words lost",
  "words twice",
  "short and not told",
  "false receipts",
  "until well",
];

export function renderTable(rows: readonly Row[]): string {
  const cells = rows.map((row) => [
    row.fault,
    String(row.runs),
    String(row.whole),
    String(row.interrupted),
    Object.entries(row.told)
      .map(([code, count]) => `${code} ${count}`)
      .join(", "),
    String(row.lostWords),
    String(row.doubledWords),
    String(row.shortfalls),
    String(row.falseReceipts),
    `${seconds(row.wellP50Ms)} / ${seconds(row.wellP99Ms)}`,
  ]);
  const line = (columns: readonly string[]): string => `| ${columns.join(" | ")} |`;
  return [line(HEADS), `|${"---|".repeat(HEADS.length)}`, ...cells.map(line)].join("\n");
}

function seconds(ms: number | null): string {
  return ms === null ? "never" : `${(ms / 1000).toFixed(1)} s`;
}

function finite(value: number): number | null {
  return Number.isFinite(value) ? Math.round(value) : null;
}
