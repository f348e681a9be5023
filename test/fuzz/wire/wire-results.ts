/** The table of wire/results.md: a row for each surface, of its last run. */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import type { SurfaceReport } from "./surface-run.ts";

const HEAD = [
  "# What mutated messages have found out",
  "",
  "Made by `npm run fuzz -- wire`; ../README.md explains the columns. A surface that breaks gets no row.",
  "",
  "| surface | messages | messages/s | connections | heap before, after | open files | sentences beside it |",
  "|---|---|---|---|---|---|---|",
];

/** Puts in the row of the surface, or replaces it. */
export function writeTableRow(path: string, report: SurfaceReport): void {
  const { name, inputs, seconds, connections } = report;
  const cells = [
    name,
    inputs.toLocaleString("en"),
    Math.round(inputs / seconds).toLocaleString("en"),
    connections.toLocaleString("en"),
    `${report.heapBeforeMb.toFixed(1)}, ${report.heapAfterMb.toFixed(1)} MB`,
    `${report.filesBefore}, ${report.filesAfter}`,
    String(report.heard),
  ];
  const old = existsSync(path) ? readFileSync(path, "utf8").split("\n").slice(HEAD.length) : [];
  const rows = old.filter((line) => line !== "" && !line.startsWith(`| ${name} |`));
  writeFileSync(path, `${[...HEAD, ...[...rows, `| ${cells.join(" | ")} |`].sort()].join("\n")}\n`);
}
