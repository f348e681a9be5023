/** Figures of wire and requests: series add up, and the table says what its JSON says. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { type RequestsRow, sumOfRequests } from "./requests-results.ts";
import { ResultsFile } from "./results-file.ts";
import { type WireRow, wireTable } from "./wire-results.ts";

const HERE = fileURLToPath(new URL(".", import.meta.url));

describe("a file of results", () => {
  const row = (seed: number, requests: number): RequestsRow => ({
    name: "gateway",
    endpoints: 3,
    requests,
    statuses: { 200: requests - 1, 400: 1 },
    heapBeforeMb: 1,
    heapAfterMb: seed,
    seeds: [seed],
  });

  it("adds up runs of other seeds, and replaces what the same seed has made", () => {
    const folder = mkdtempSync(join(tmpdir(), "voicewire-results-"));
    try {
      const file = new ResultsFile<RequestsRow>(join(folder, "results.json"));
      expect(file.newSeed("gateway")).toBe(1);
      file.add(row(1, 10), sumOfRequests);
      file.add(row(2, 20), sumOfRequests);
      expect(file.rows).toEqual([
        { ...row(2, 20), requests: 30, statuses: { 200: 28, 400: 2 }, seeds: [1, 2] },
      ]);
      expect(file.newSeed("gateway")).toBe(3);
      file.add(row(2, 5), sumOfRequests);
      expect(file.rows).toEqual([row(2, 5)]);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});

describe("wire/results.md", () => {
  it("is what results.json says", () => {
    const table = wireTable(new ResultsFile<WireRow>(join(HERE, "results.json")).rows);
    const page = join(HERE, "results.md");
    if (process.env.UPDATE_DOCS === "1") writeFileSync(page, table);
    else expect(readFileSync(page, "utf8")).toBe(table);
  });
});
