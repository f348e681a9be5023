/** Runs the same benches with two builds in turn, and says how far the second one is from the first. */
import type { Row } from "./bench.ts";
import type { Section } from "./results.ts";
import { median } from "./statistics.ts";

/** Their figures are of the source of this checkout, whatever build is named. */
const OF_THE_CHECKOUT: ReadonlySet<string> = new Set(["align", "ndjson", "resample"]);
/** No part of a word, as p99 is. */
const NUMBERS = /(?<![\w.])-?\d[\d,]*(?:\.\d+)?/g;
const DEFAULT_NAMES = ["p1", "p3"];

export interface Compared {
  readonly figure: string;
  /** As it was measured, the median of each of its numbers. */
  readonly first: string;
  readonly second: string;
  /** Of the second to the first; empty where there is none. */
  readonly ratio: string;
  /** The smallest and largest of the runs of both, as a share of the median: a smaller difference is none. */
  readonly scatter: string;
}

/** The benches to compare, or what is wrong with them. */
export function comparedNames(names: readonly string[], all: readonly string[]): readonly string[] | string {
  const unknown = names.find((name) => !all.includes(name));
  if (unknown !== undefined) return `No such bench: ${unknown}`;
  const fixed = names.find((name) => OF_THE_CHECKOUT.has(name));
  if (fixed !== undefined) return `Bench ${fixed} measures the source of this checkout, not a build`;
  return names.length === 0 ? DEFAULT_NAMES : names;
}

/** `run`: one round of one bench with one of the builds. Each round begins with the other build. Throws where a bench fails. */
export async function compareBuilds(
  names: readonly string[],
  rounds: number,
  run: (name: string, build: 0 | 1) => Promise<Section>,
): Promise<Compared[]> {
  const compared: Compared[] = [];
  for (const name of names) {
    const rows: [Row[], Row[]] = [[], []];
    for (let round = 0; round < rounds; round += 1) {
      const order = round % 2 === 0 ? ([0, 1] as const) : ([1, 0] as const);
      for (const build of order) {
        const section = await run(name, build);
        if (section.failure !== null) throw new Error(`Bench ${name} failed: ${section.failure}`);
        rows[build].push(...section.rows);
      }
    }
    compared.push(...compareRows(rows[0], rows[1]));
  }
  return compared;
}

/** Rows of several rounds, those of one figure together. */
export function compareRows(first: readonly Row[], second: readonly Row[]): Compared[] {
  const figures = [...new Set([...first, ...second].map(keyOf))];
  return figures.map((figure) => {
    const [ours, theirs] = [first, second].map((rows) => rows.filter((row) => keyOf(row) === figure));
    const [a, b] = [mediansOf(ours ?? []), mediansOf(theirs ?? [])];
    const isSame = a.length === b.length;
    return {
      figure,
      first: shown(ours ?? [], a),
      second: shown(theirs ?? [], b),
      ratio: isSame ? a.map((value, index) => ratio(b[index] ?? Number.NaN, value)).join(" / ") : "",
      scatter: isSame
        ? a.map((_, index) => scatter([...(ours ?? []), ...(theirs ?? [])], index)).join(" / ")
        : "",
    };
  });
}

/** Counts of samples differ from run to run. */
function keyOf({ figure }: Row): string {
  return figure.replace(/n=\d+/g, "n").replace(/\d+ (?=listeners|sessions\))/g, "");
}

function numbersOf({ measured }: Row): number[] {
  return [...measured.matchAll(NUMBERS)].map(([text]) => Number(text.replaceAll(",", "")));
}

function mediansOf(rows: readonly Row[]): number[] {
  const all = rows.map(numbersOf);
  return (all[0] ?? []).map((_, index) => median(all.map((numbers) => numbers[index] ?? Number.NaN)));
}

function shown(rows: readonly Row[], medians: readonly number[]): string {
  const [row] = rows;
  if (row === undefined) return "none";
  let index = 0;
  return row.measured.replace(NUMBERS, () => {
    const value = medians[index] ?? Number.NaN;
    index += 1;
    return String(Number(value.toPrecision(4)));
  });
}

function ratio(value: number, to: number): string {
  return to === 0 ? (value === 0 ? "1.00" : "-") : (value / to).toFixed(2);
}

function scatter(rows: readonly Row[], index: number): string {
  const values = rows.map((row) => numbersOf(row)[index] ?? Number.NaN);
  const middle = median(values);
  return middle === 0
    ? "-"
    : `${(Math.min(...values) / middle).toFixed(2)}-${(Math.max(...values) / middle).toFixed(2)}`;
}

export function renderCompared(
  rows: readonly Compared[],
  [first, second]: readonly [string, string],
): string {
  const lines = [
    ["figure", first, second, "ratio", "runs"],
    ...rows.map((row) => [row.figure, row.first, row.second, row.ratio, row.scatter]),
  ];
  const widths = [0, 1, 2, 3, 4].map((column) =>
    Math.max(...lines.map((line) => (line[column] ?? "").length)),
  );
  const [head = "", ...body] = lines.map(
    (line) => `| ${line.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(" | ")} |`,
  );
  return [head, `|${widths.map((width) => "-".repeat(width + 2)).join("|")}|`, ...body].join("\n");
}
