import { readFileSync, writeFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import type { Run } from "../../../../bench/chaos/caller.ts";
import { run } from "../../../../bench/chaos/main.ts";
import { isKept, rowOf, sumOf } from "../../../../bench/chaos/report.ts";
import { temporaryFolder } from "../../../cli/program.ts";

const WHOLE: Run = {
  session: "chaos-1",
  isStruck: true,
  outcome: "whole",
  lostWords: 0,
  doubledWords: 0,
  shortfalls: [],
  falseReceipts: [],
  wellMs: 100,
};

describe("rowOf", () => {
  it("counts runs by the client's error, and by when speech was well again", () => {
    const failed = { ...WHOLE, outcome: "upstream_timeout", wellMs: 3000 };
    const interrupted = { ...WHOLE, outcome: "interrupted" };
    expect(rowOf("stall", [WHOLE, failed, failed, interrupted], 4)).toEqual({
      fault: "stall",
      runs: 4,
      whole: 1,
      interrupted: 1,
      told: { upstream_timeout: 2 },
      lostWords: 0,
      doubledWords: 0,
      shortfalls: 0,
      falseReceipts: 0,
      wellRuns: 4,
      wellP50Ms: 100,
      wellP99Ms: 3000,
      seeds: [4],
    });
  });

  it("adds up the series of a fault, and keeps the waits of the largest", () => {
    const slow = { ...WHOLE, outcome: "upstream_timeout", wellMs: 3000, lostWords: 2 };
    const other = { ...WHOLE, outcome: "gap", shortfalls: ["no end came"], wellMs: 9000 };
    const large = rowOf("stall", [WHOLE, slow, slow], 1);
    for (const sum of [sumOf(large, rowOf("stall", [other], 2)), sumOf(rowOf("stall", [other], 2), large)]) {
      const { seeds: _, ...all } = rowOf("stall", [WHOLE, slow, slow, other], 1);
      expect(sum).toMatchObject({ ...all, wellRuns: 3, wellP50Ms: 3000, wellP99Ms: 3000 });
      expect(sum.seeds.toSorted()).toEqual([1, 2]);
      expect(sumOf(sum, rowOf("stall", [{ ...WHOLE, wellMs: null }], 3)).wellP99Ms).toBeNull();
    }
  });

  it.each<Partial<Run>>([
    { lostWords: 1 },
    { doubledWords: 1 },
    { shortfalls: ["no end came"] },
    { falseReceipts: ["too much"] },
    { wellMs: null },
  ])("says of %j that something promised was lost", (lack) => {
    expect(isKept(rowOf("stall", [WHOLE], 1))).toBe(true);
    expect(isKept(rowOf("stall", [WHOLE, { ...WHOLE, ...lack }], 1))).toBe(false);
  });
});

describe("npm run chaos", () => {
  const said: string[] = [];
  beforeAll(() => {
    for (const method of ["log", "error"] as const)
      vi.spyOn(console, method).mockImplementation((line: string) => void said.push(line));
  });
  afterAll(() => {
    vi.restoreAllMocks();
  });
  const chaosIn = (resultsFile: string, ...args: string[]) =>
    run({ args, distUrl: new URL("../../../../dist/", import.meta.url).href, resultsFile });

  it.each([
    ["--runs", "0"],
    ["--seed", "-1"],
    ["--minutes", "0"],
    ["--at-once", "0"],
    ["nothing"],
    ["--short", "--write"],
    ["--short", "--add"],
  ])("refuses %s %s with what it expects", async (...args) => {
    said.length = 0;
    expect(await chaosIn("", ...args)).toBe(2);
    expect(said.join("\n")).toContain("Usage: npm run chaos");
  });

  it("lists the faults", async () => {
    said.length = 0;
    expect(await chaosIn("", "--list")).toBe(0);
    expect(said.some((line) => line.startsWith("half-open "))).toBe(true);
  });

  describe.concurrent("on the built program", { timeout: 120_000 }, () => {
    it("lets faults loose, and writes the rows of those that ran", async () => {
      using folder = temporaryFolder();
      const file = folder.file("results.json");
      const earlier = { machine: [], args: [], rows: [rowOf("stall", [WHOLE], 1), rowOf("reset", [], 1)] };
      writeFileSync(file, JSON.stringify(earlier));
      expect(await chaosIn(file, "reset", "sigkill", "--runs", "4", "--write")).toBe(0);
      const { rows } = JSON.parse(readFileSync(file, "utf8")) as typeof earlier;
      expect(rows.map(({ fault }) => fault)).toEqual(["stall", "reset", "sigkill"]);
      expect(rows[0]).toEqual(earlier.rows[0]);
      for (const { runs } of rows.slice(1)) expect(runs).toBeGreaterThanOrEqual(4);
    });

    it("--add: makes the runs that are missing, of a seed that is new", async () => {
      using folder = temporaryFolder();
      const file = folder.file("results.json");
      const wholeRuns = (count: number) => Array.from({ length: count }, () => WHOLE);
      const rowsBefore = [rowOf("none", wholeRuns(100), 1), rowOf("chunks", wholeRuns(102), 1)];
      const before = { machine: [], args: [], rows: rowsBefore };
      writeFileSync(file, JSON.stringify(before));
      expect(await chaosIn(file, "none", "chunks", "--runs", "102", "--at-once", "2", "--add")).toBe(0);
      const { rows } = JSON.parse(readFileSync(file, "utf8")) as typeof before;
      expect(rows.map(({ fault, runs, seeds }) => ({ fault, runs, seeds }))).toEqual([
        { fault: "none", runs: 102, seeds: [1, 2] },
        { fault: "chunks", runs: 102, seeds: [1] },
      ]);
    });
  });
});
