/** The tables of docs/capacity.md are the output of the simulation. UPDATE_DOCS=1 writes them again. */
import { readFileSync, writeFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { parameterTables, readParameters } from "../../bench/kit/simulation/parameters.ts";
import { simulate } from "../../bench/kit/simulation/report.ts";

const PAGE = new URL("../../docs/capacity.md", import.meta.url);
const TABLES = parameterTables(new URL("../../bench/results.json", import.meta.url));
const BLOCK = /<!-- simulation:(\w+) -->\n([\s\S]*?)<!-- simulation:end -->/g;

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
    if (process.env.UPDATE_DOCS === "1") writeFileSync(PAGE, written);
    else
      expect(page, "out of date: UPDATE_DOCS=1 npx vitest run test/deploy/capacity-page.test.ts").toBe(
        written,
      );
  }, 120_000);
});
