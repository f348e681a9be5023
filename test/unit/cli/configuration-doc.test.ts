import { readFileSync, writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { describeRange } from "../../../src/cli/settings.ts";
import { SETTINGS } from "../../../src/config.ts";

const PAGE = new URL("../../../docs/configuration.md", import.meta.url);
const BEGIN =
  "<!-- settings:begin (generated: UPDATE_DOCS=1 npx vitest run test/unit/cli/configuration-doc) -->\n";
const END = "<!-- settings:end -->";

/** The table of config.ts in Markdown. */
function settingsTable(): string {
  const rows = SETTINGS.map((row) =>
    [
      `\`${row.key}\``,
      `\`--${row.flag}\``,
      `\`${row.env}\``,
      row.default === "" ? "(empty)" : `\`${row.default}\``,
      row.kind === "integer" ? `${row.min}-${row.max}` : describeRange(row).replace(/^one of /, ""),
      row.unit === undefined || row.unit === "count" || row.unit === "port" ? "" : row.unit,
      row.about,
    ].join(" | "),
  );
  return [
    "Key in the file | Flag | Environment | Default | Allowed | Unit | What it does",
    "--- | --- | --- | --- | --- | --- | ---",
    ...rows,
    "",
  ]
    .map((line) => (line === "" ? line : `| ${line} |`))
    .join("\n");
}

function tableOfPage(page: string): { before: string; table: string; after: string } {
  const begin = page.indexOf(BEGIN);
  const end = page.indexOf(END);
  if (begin === -1 || end === -1)
    throw new Error("Expected docs/configuration.md to hold the table's two markers");
  const start = begin + BEGIN.length;
  return { before: page.slice(0, start), table: page.slice(start, end), after: page.slice(end) };
}

test("docs/configuration.md has the table of config.ts, row by row", () => {
  const { before, table, after } = tableOfPage(readFileSync(PAGE, "utf8"));
  if (process.env.UPDATE_DOCS === "1") {
    writeFileSync(PAGE, `${before}${settingsTable()}${after}`);
    return;
  }
  expect(table).toBe(settingsTable());
});
