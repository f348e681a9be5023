import { readFileSync, writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { listItem } from "../../../bench/kit/list-item.ts";
import { describeRange } from "../../../src/cli/settings.ts";
import { CLUSTER } from "../../../src/config/cluster.ts";
import { SERVER } from "../../../src/config/server.ts";
import { type Setting, withNames } from "../../../src/config/setting.ts";
import { SPEECH } from "../../../src/config/speech.ts";
import { TELEPHONY } from "../../../src/config/telephony.ts";
import { UPSTREAM } from "../../../src/config/upstream.ts";
import { SETTINGS } from "../../../src/config.ts";

const PAGE = new URL("../../../docs/configuration.md", import.meta.url);
const BEGIN =
  "<!-- settings:begin (generated: UPDATE_DOCS=1 npx vitest run test/unit/cli/configuration-doc) -->\n";
const END = "<!-- settings:end -->";
const CHAPTERS: readonly (readonly [string, readonly Setting[]])[] = [
  ["Server", SERVER.map(withNames)],
  ["Cluster", CLUSTER.map(withNames)],
  ["Upstream", UPSTREAM.map(withNames)],
  ["Phone calls", TELEPHONY.map(withNames)],
  ["Speech and captions", SPEECH.map(withNames)],
];

/** The table of config.ts in Markdown: an entry for each setting, by chapter. */
function settingsList(): string {
  return CHAPTERS.map(([title, rows]) => `\n### ${title}\n\n${rows.map(entryOf).join("\n")}\n`).join("");
}

function entryOf(row: Setting): string {
  const facts = [
    row.default === "" ? "no default" : `default \`${row.default}\``,
    row.kind === "string" && row.key !== "upstreamUrl" ? "" : rangeOf(row),
    row.key === keyOf(row.flag) ? "" : `key in the file \`${row.key}\``,
  ].filter((fact) => fact !== "");
  return listItem(`**\`--${row.flag}\`** (${facts.join("; ")}). ${row.about}.`);
}

function rangeOf(row: Setting): string {
  if (row.kind !== "integer") return describeRange(row);
  const unit = row.unit === undefined ? "" : ` ${row.unit}`;
  return `${row.min}-${row.max}${unit}`;
}

const keyOf = (flag: string): string => flag.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase());

function listOfPage(page: string): { before: string; list: string; after: string } {
  const begin = page.indexOf(BEGIN);
  const end = page.indexOf(END);
  if (begin === -1 || end === -1)
    throw new Error("Expected docs/configuration.md to hold the list's two markers");
  const start = begin + BEGIN.length;
  return { before: page.slice(0, start), list: page.slice(start, end), after: page.slice(end) };
}

test("docs/configuration.md has the table of config.ts, row by row", () => {
  expect(CHAPTERS.flatMap(([, rows]) => rows)).toEqual(SETTINGS);
  const { before, list, after } = listOfPage(readFileSync(PAGE, "utf8"));
  if (process.env.UPDATE_DOCS === "1") {
    writeFileSync(PAGE, `${before}${settingsList()}${after}`);
    return;
  }
  expect(list).toBe(settingsList());
});
