/** What mutated messages came to: a row for each surface, and the table that shows them. */

import type { SeededRow } from "./results-file.ts";
import type { SurfaceReport } from "./surface-run.ts";

export interface WireRow
  extends SeededRow,
    Pick<
      SurfaceReport,
      | "connections"
      | "seconds"
      | "heard"
      // These are the last run's.
      | "heapBeforeMb"
      | "heapAfterMb"
      | "filesBefore"
      | "filesAfter"
    > {
  readonly messages: number;
}

export function wireRow(report: SurfaceReport, seed: number): WireRow {
  const { name, inputs, connections, seconds, heard } = report;
  const { heapBeforeMb, heapAfterMb, filesBefore, filesAfter } = report;
  return {
    name,
    messages: inputs,
    connections,
    seconds: Math.round(seconds),
    heard,
    heapBeforeMb,
    heapAfterMb,
    filesBefore,
    filesAfter,
    seeds: [seed],
  };
}

export function sumOfWire(earlier: WireRow, later: WireRow): WireRow {
  return {
    ...later,
    messages: earlier.messages + later.messages,
    connections: earlier.connections + later.connections,
    seconds: earlier.seconds + later.seconds,
    heard: earlier.heard + later.heard,
    seeds: [...earlier.seeds, ...later.seeds],
  };
}

const HEAD = [
  "# What mutated messages have found out",
  "",
  "Made of `results.json`, which `npm run fuzz -- wire` adds to; ../README.md explains the columns. A run that breaks is not in it.",
  "",
  "| surface | messages | messages/s | connections | heap before, after | open files | sentences beside it |",
  "|---|---|---|---|---|---|---|",
];

export function wireTable(rows: readonly WireRow[]): string {
  const lines = rows.map((row) => {
    const cells = [
      row.name,
      row.messages.toLocaleString("en"),
      Math.round(row.messages / row.seconds).toLocaleString("en"),
      row.connections.toLocaleString("en"),
      `${row.heapBeforeMb.toFixed(1)}, ${row.heapAfterMb.toFixed(1)} MB`,
      `${row.filesBefore}, ${row.filesAfter}`,
      String(row.heard),
    ];
    return `| ${cells.join(" | ")} |`;
  });
  return `${[...HEAD, ...lines].join("\n")}\n`;
}
