/** The table of results.md: a row for each target, of its last run. */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import type { Report } from "./messages.ts";

const HEAD = [
  "# What fuzzing has found out",
  "",
  "Made by `npm run fuzz`; README.md explains the columns. A target that breaks gets no row.",
  "",
  "| target | inputs | inputs/s | branches | slowest input | heap before, after |",
  "|---|---|---|---|---|---|",
];

/** Puts in the row of the target, or replaces it. */
export function writeRow(path: string, report: Report): void {
  const { target, inputs, seconds, branches, slowestMs, slowestBytes, heapBeforeMb, heapAfterMb } = report;
  const cells = [
    target,
    inputs.toLocaleString("en"),
    Math.round(inputs / seconds).toLocaleString("en"),
    branches,
    `${slowestMs.toFixed(1)} ms (${slowestBytes.toLocaleString("en")} bytes)`,
    `${heapBeforeMb.toFixed(1)}, ${heapAfterMb.toFixed(1)} MB`,
  ];
  const row = `| ${cells.join(" | ")} |`;
  const old = existsSync(path) ? readFileSync(path, "utf8").split("\n").slice(HEAD.length) : [];
  const rows = old.filter((line) => line !== "" && !line.startsWith(`| ${target} |`));
  writeFileSync(path, `${[...HEAD, ...[...rows, row].sort()].join("\n")}\n`);
}
