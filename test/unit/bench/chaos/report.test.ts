import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Run } from "../../../../bench/chaos/caller.ts";
import { run } from "../../../../bench/chaos/main.ts";
import { isKept, rowOf } from "../../../../bench/chaos/report.ts";

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
    expect(rowOf("stall", [WHOLE, failed, failed])).toEqual({
      fault: "stall",
      runs: 3,
      whole: 1,
      told: { upstream_timeout: 2 },
      lostWords: 0,
      doubledWords: 0,
      shortfalls: 0,
      falseReceipts: 0,
      wellP50Ms: 3000,
      wellP99Ms: 3000,
    });
  });

  it.each<Partial<Run>>([
    { lostWords: 1 },
    { doubledWords: 1 },
    { shortfalls: ["no end came"] },
    { falseReceipts: ["too much"] },
    { wellMs: null },
  ])("says of %j that something promised was lost", (lack) => {
    expect(isKept(rowOf("stall", [WHOLE]))).toBe(true);
    expect(isKept(rowOf("stall", [WHOLE, { ...WHOLE, ...lack }]))).toBe(false);
  });
});

describe("npm run chaos", () => {
  let folder: string;
  const said: string[] = [];
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "voicewire-chaos-"));
    said.length = 0;
    for (const method of ["log", "error"] as const)
      vi.spyOn(console, method).mockImplementation((line: string) => void said.push(line));
  });
  afterEach(() => {
    vi.restoreAllMocks();
    rmSync(folder, { recursive: true, force: true });
  });
  const chaos = (...args: string[]) =>
    run({
      args,
      distUrl: new URL("../../../../dist/", import.meta.url).href,
      resultsFile: join(folder, "results.json"),
    });

  it.each([["--runs", "0"], ["--seed", "-1"], ["--minutes", "0"], ["nothing"], ["--short", "--write"]])(
    "refuses %s %s with what it expects",
    async (...args) => {
      expect(await chaos(...args)).toBe(2);
      expect(said.join("\n")).toContain("Usage: npm run chaos");
    },
  );

  it("lists the faults", async () => {
    expect(await chaos("--list")).toBe(0);
    expect(said.some((line) => line.startsWith("half-open "))).toBe(true);
  });

  it("lets faults loose on the built program, and writes the rows of those that ran", async () => {
    const earlier = { machine: [], args: [], rows: [rowOf("stall", [WHOLE]), rowOf("reset", [])] };
    writeFileSync(join(folder, "results.json"), JSON.stringify(earlier));
    expect(await chaos("reset", "sigkill", "--runs", "4", "--write")).toBe(0);
    const { rows } = JSON.parse(readFileSync(join(folder, "results.json"), "utf8")) as typeof earlier;
    expect(rows.map(({ fault }) => fault)).toEqual(["stall", "reset", "sigkill"]);
    expect(rows[0]).toEqual(earlier.rows[0]);
    for (const { runs } of rows.slice(1)) expect(runs).toBeGreaterThanOrEqual(4);
  }, 120_000);
});
