/** The tables of docs/capacity.md are the output of the simulation. UPDATE_DOCS=1 writes them again. */
import { readFileSync, writeFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { parameterTables, readParameters } from "../../bench/kit/simulation/parameters.ts";
import { simulate } from "../../bench/kit/simulation/report.ts";

const PAGE = new URL("../../docs/capacity.md", import.meta.url);
const TABLES = parameterTables(new URL("../../bench/results.json", import.meta.url));
const BLOCK = /<!-- simulation:(\w+) -->\n([\s\S]*?)<!-- simulation:end -->/g;

function rowsOf(table: string | undefined): string[][] {
  return (table ?? "")
    .split("\n")
    .slice(2)
    .map((line) =>
      line
        .split("|")
        .slice(1, -1)
        .map((cell) => cell.trim()),
    );
}

/** What the page says below the table of parts. */
function expectPartsAsTold(parts: string | undefined): void {
  const rows = rowsOf(parts);
  const fullest = (column: number) => {
    const sorted = rows
      .map((cells) => ({ part: cells[0] ?? "", percent: Number.parseFloat(cells[column] ?? "") }))
      .sort((one, other) => other.percent - one.percent);
    return sorted[0] ?? { part: "", percent: Number.NaN };
  };
  expect(fullest(1).part).toMatch(/^CPU of nats-server/);
  expect(fullest(2).part).toBe("event loop of the fullest node");
  expect(fullest(3).percent).toBeLessThan(100);
}

/** And below those of placement and of lost nodes. */
function expectPlacesAsTold(placement: string | undefined, takeover: string | undefined): void {
  const placed = rowsOf(placement);
  const rowsWith = (listeners: string) => placed.filter((cells) => cells[1] === listeners);
  const most = rowsWith("one each").map((cells) => Number.parseFloat(cells[4] ?? ""));
  expect(most.at(-1)).toBe(Math.min(...most));
  for (const cells of rowsWith("all")) expect(Number(cells[2])).toBeGreaterThan(1);
  const lost = rowsOf(takeover);
  const [kept, given] = (lost[0] ?? []).slice(4).map(Number.parseFloat);
  expect(kept).toBeGreaterThan(1.8);
  expect(given).toBeLessThan(1.3);
  for (const cells of lost) expect(cells[3]).toBe("0 %");
}

describe("docs/capacity.md", () => {
  it("its tables are what the simulation prints", async () => {
    const parameters = readParameters(TABLES, []);
    if (typeof parameters === "string") throw new Error(parameters);
    const sections = new Map(
      (await simulate(parameters, TABLES)).map(({ name, markdown }) => [name, markdown]),
    );
    const page = readFileSync(PAGE, "utf8");
    expect([...page.matchAll(BLOCK)].map(([, name]) => name).sort()).toEqual([...sections.keys()].sort());
    const written = page.replace(
      BLOCK,
      (_, name: string) => `<!-- simulation:${name} -->\n\n${sections.get(name)}\n\n<!-- simulation:end -->`,
    );
    expectPartsAsTold(sections.get("parts"));
    expectPlacesAsTold(sections.get("placement"), sections.get("takeover"));
    if (process.env.UPDATE_DOCS === "1") writeFileSync(PAGE, written);
    else
      expect(page, "out of date: UPDATE_DOCS=1 npx vitest run test/deploy/capacity-page.test.ts").toBe(
        written,
      );
  }, 120_000);
});
