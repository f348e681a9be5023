/** The tables of docs/capacity.md are the output of the simulation. UPDATE_DOCS=1 writes them again. */
import { readFileSync, writeFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { parameterTables, readParameters } from "../../bench/kit/simulation/parameters.ts";
import { simulate } from "../../bench/kit/simulation/report.ts";

const PAGE = new URL("../../docs/capacity.md", import.meta.url);
const TABLES = parameterTables(new URL("../../bench/results.json", import.meta.url));
const BLOCK = /<!-- simulation:(\w+) -->\n([\s\S]*?)<!-- simulation:end -->/g;

/** What the page says below the table of parts. */
function expectClaims(parts: string): void {
  const rows = parts
    .split("\n")
    .slice(2)
    .map((line) =>
      line
        .split("|")
        .slice(1, -1)
        .map((cell) => cell.trim()),
    );
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
    expectClaims(sections.get("parts") ?? "");
    if (process.env.UPDATE_DOCS === "1") writeFileSync(PAGE, written);
    else
      expect(page, "out of date: UPDATE_DOCS=1 npx vitest run test/deploy/capacity-page.test.ts").toBe(
        written,
      );
  }, 120_000);
});
