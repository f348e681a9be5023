/** The figures of docs/chaos.md are those of the last runs. UPDATE_DOCS=1 writes them again. */
import { readFileSync, writeFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { FAULTS } from "../../../../bench/chaos/faults.ts";
import { renderChaos } from "../../../../bench/chaos/page.ts";
import { type ChaosResults, rowOf } from "../../../../bench/chaos/report.ts";
import { renderSurvival } from "../../../../bench/chaos/survival.ts";
import type { Run as BenchRun } from "../../../../bench/kit/results.ts";
import type { RequestsRow } from "../../../fuzz/wire/requests-results.ts";
import type { WireRow } from "../../../fuzz/wire/wire-results.ts";

const ROOT = new URL("../../../../", import.meta.url);
const PAGE = new URL("docs/chaos.md", ROOT);
const read = <T>(file: string): T => JSON.parse(readFileSync(new URL(file, ROOT), "utf8")) as T;

/** Holds what stands between the page's two marks against `block`, or writes it. */
function expectBlock(mark: string, block: string): void {
  const between = new RegExp(`<!-- ${mark} -->\\n[\\s\\S]*<!-- ${mark}:end -->`);
  const page = readFileSync(PAGE, "utf8");
  expect(page).toMatch(between);
  const written = page.replace(between, () => `<!-- ${mark} -->\n\n${block}\n\n<!-- ${mark}:end -->`);
  if (process.env.UPDATE_DOCS === "1") writeFileSync(PAGE, written);
  else
    expect(page, "out of date: UPDATE_DOCS=1 npx vitest run test/unit/bench/chaos/page.test.ts").toBe(
      written,
    );
}

const results = read<ChaosResults>("bench/chaos-results.json");

describe("docs/chaos.md", () => {
  it("has the figures of bench/chaos-results.json, one row for each fault", () => {
    expect(results.rows.map(({ fault }) => fault)).toEqual(FAULTS.map(({ name }) => name));
    expectBlock("chaos", renderChaos(results, FAULTS));
  });

  it("says what it survives, out of the figures of chaos, crowd and fuzz", () => {
    const trials = {
      chaos: results.rows,
      benches: read<BenchRun[]>("bench/results.json"),
      wire: read<WireRow[]>("test/fuzz/wire/results.json"),
      requests: read<RequestsRow[]>("test/fuzz/wire/requests.json"),
    };
    const table = renderSurvival(trials);
    for (const trial of [
      "mutated messages",
      "mutated requests, gateway",
      "mutated requests, service",
      "crowd: ",
    ])
      expect(table).toContain(`| ${trial}`);
    expectBlock("survives", table);
  });
});

describe("what it survives", () => {
  it("names what was lost", () => {
    const [row] = results.rows;
    const bad = { ...rowOf("stall", [], 1), ...row, fault: "stall", lostWords: 3, falseReceipts: 1 };
    const table = renderSurvival({ chaos: [bad], benches: [], wire: [], requests: [] });
    expect(table).toContain("| fault `stall` |");
    expect(table).toContain("3 words lost, 1 false receipts: ");
    expect(table).not.toContain("nothing promised lost");
  });
});
