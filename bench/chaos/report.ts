/** What many runs of one fault came to, and the page that says so. */
import { percentile } from "../kit/statistics.ts";
import type { Run } from "./caller.ts";

export interface Row {
  readonly fault: string;
  readonly runs: number;
  readonly whole: number;
  /** Runs by what else the client was told: `cut`, `gap`, or a code. */
  readonly told: Readonly<Record<string, number>>;
  readonly lostWords: number;
  readonly doubledWords: number;
  readonly shortfalls: number;
  readonly falseReceipts: number;
  /** Until speech came again, of all runs; null: never in the worst of these. */
  readonly wellP50Ms: number | null;
  readonly wellP99Ms: number | null;
}

export interface ChaosResults {
  readonly machine: readonly string[];
  readonly args: readonly string[];
  readonly rows: readonly Row[];
}

export function rowOf(fault: string, runs: readonly Run[]): Row {
  const told: Record<string, number> = {};
  for (const { outcome } of runs) if (outcome !== "whole") told[outcome] = (told[outcome] ?? 0) + 1;
  const waits = runs.map(({ wellMs }) => wellMs ?? Number.POSITIVE_INFINITY);
  const sum = (of: (run: Run) => number): number => runs.reduce((total, run) => total + of(run), 0);
  return {
    fault,
    runs: runs.length,
    whole: runs.filter(({ outcome }) => outcome === "whole").length,
    told: Object.fromEntries(Object.entries(told).sort(([one], [other]) => (one < other ? -1 : 1))),
    lostWords: sum(({ lostWords }) => lostWords),
    doubledWords: sum(({ doubledWords }) => doubledWords),
    shortfalls: runs.filter(({ shortfalls }) => shortfalls.length > 0).length,
    falseReceipts: runs.filter(({ falseReceipts }) => falseReceipts.length > 0).length,
    wellP50Ms: finite(percentile(waits, 0.5)),
    wellP99Ms: finite(percentile(waits, 0.99)),
  };
}

/** Whether all that was promised was kept. */
export function isKept({ lostWords, doubledWords, shortfalls, falseReceipts, wellP99Ms }: Row): boolean {
  return lostWords + doubledWords + shortfalls + falseReceipts === 0 && wellP99Ms !== null;
}

const HEADS = [
  "fault",
  "runs",
  "whole",
  "told otherwise",
  "words lost",
  "words twice",
  "short and not told",
  "false receipts",
  "until well, p50 / p99",
];

export function renderTable(rows: readonly Row[]): string {
  const cells = rows.map((row) => [
    row.fault,
    String(row.runs),
    String(row.whole),
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
