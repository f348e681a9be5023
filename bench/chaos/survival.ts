/** "What it survives" of docs/chaos.md: trial, size and outcome, out of the JSON that each trial leaves. */
import type { RequestsRow } from "../../test/fuzz/wire/requests-results.ts";
import type { WireRow } from "../../test/fuzz/wire/wire-results.ts";
import type { Run as BenchRun } from "../kit/results.ts";
import type { Row } from "./report.ts";

export interface Trials {
  readonly chaos: readonly Row[];
  readonly benches: readonly BenchRun[];
  readonly wire: readonly WireRow[];
  readonly requests: readonly RequestsRow[];
}

const HEADS = ["trial", "size", "what came of it"];

export function renderSurvival({ chaos, benches, wire, requests }: Trials): string {
  const rows = [
    wireLine(wire),
    ...requests.map(requestsLine),
    ...crowdLines(benches),
    ...chaos.map(chaosLine),
  ];
  const line = (columns: readonly string[]): string => `| ${columns.join(" | ")} |`;
  return [line(HEADS), `|${"---|".repeat(HEADS.length)}`, ...rows.map(line)].join("\n");
}

/** A run that broke is in no file: what is there has held. */
function wireLine(rows: readonly WireRow[]): string[] {
  const total = sum(rows, ({ messages }) => messages);
  const least = Math.min(...rows.map(({ messages }) => messages));
  const grownMb = Math.max(...rows.map(({ heapBeforeMb, heapAfterMb }) => heapAfterMb - heapBeforeMb));
  return [
    "mutated messages",
    `${count(total)} on ${rows.length} sockets, at least ${count(least)} each`,
    `held: ${count(sum(rows, ({ heard }) => heard))} sentences beside them whole, memory +${grownMb.toFixed(1)} MB at most`,
  ];
}

function requestsLine({ name, endpoints, requests, statuses, ...row }: RequestsRow): string[] {
  const refused = sum(Object.entries(statuses), ([status, times]) => (/^4/.test(status) ? times : 0));
  return [
    `mutated requests, ${name}`,
    `${count(requests)} to ${endpoints} endpoints, ${count(Math.floor(requests / endpoints))} each`,
    `held: ${count(refused)} refused (4xx), memory ${row.heapBeforeMb} to ${row.heapAfterMb} MB`,
  ];
}

function crowdLines(benches: readonly BenchRun[]): string[][] {
  const crowd = benches.find(({ name }) => name === "crowd");
  return (crowd?.rows ?? []).map(({ figure, measured, baseline }) => {
    const [, what = figure, size = ""] =
      /^Crowd: (.+?),? ((?:\d+ sessions beside|beside|after) .+)$/.exec(figure) ?? [];
    return [`crowd: ${what}`, size, `${measured}; ${baseline}`];
  });
}

function chaosLine({ fault, runs, whole, interrupted, told, ...row }: Row): string[] {
  const toldOf = sum(Object.values(told), (times) => times);
  const lost = [
    [row.lostWords, "words lost"],
    [row.doubledWords, "words twice"],
    [row.shortfalls, "short and not told"],
    [row.falseReceipts, "false receipts"],
  ].flatMap(([times, what]) => (times === 0 ? [] : `${times} ${what}`));
  return [
    `fault \`${fault}\``,
    `${count(runs)} callers`,
    `${lost.length === 0 ? "nothing promised lost" : lost.join(", ")}: ${count(whole)} whole, ${count(interrupted)} interrupted by their caller, ${count(toldOf)} told`,
  ];
}

function sum<T>(items: readonly T[], of: (item: T) => number): number {
  return items.reduce((total, item) => total + of(item), 0);
}

function count(number: number): string {
  return number.toLocaleString("en");
}
