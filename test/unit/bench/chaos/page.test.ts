/** The figures of docs/chaos.md are those of the last runs. UPDATE_DOCS=1 writes them again. */
import { readFileSync, writeFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { FAULTS } from "../../../../bench/chaos/faults.ts";
import { renderChaos } from "../../../../bench/chaos/page.ts";
import type { ChaosResults } from "../../../../bench/chaos/report.ts";

const PAGE = new URL("../../../../docs/chaos.md", import.meta.url);
const RESULTS = new URL("../../../../bench/chaos-results.json", import.meta.url);
const BLOCK = /<!-- chaos -->\n[\s\S]*<!-- chaos:end -->/;

describe("docs/chaos.md", () => {
  it("has the figures of bench/chaos-results.json, one row for each fault", () => {
    const results = JSON.parse(readFileSync(RESULTS, "utf8")) as ChaosResults;
    expect(results.rows.map(({ fault }) => fault)).toEqual(FAULTS.map(({ name }) => name));
    const page = readFileSync(PAGE, "utf8");
    expect(page).toMatch(BLOCK);
    const block = `<!-- chaos -->\n\n${renderChaos(results, FAULTS)}\n\n<!-- chaos:end -->`;
    const written = page.replace(BLOCK, () => block);
    if (process.env.UPDATE_DOCS === "1") writeFileSync(PAGE, written);
    else
      expect(page, "out of date: UPDATE_DOCS=1 npx vitest run test/unit/bench/chaos/page.test.ts").toBe(
        written,
      );
  });
});
