/** Each parameter of the interface has a test that fails where it is ignored: the table of docs/endpoints.md. */
import { readFileSync, writeFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { type Declaration, declarationsIn, declarationsOfTests } from "./declared.ts";
import { documentedGroups, type Group } from "./documented.ts";

const PAGE = new URL("../../../docs/endpoints.md", import.meta.url);
const BEGIN = "<!-- parameters:begin (generated: UPDATE_DOCS=1 npx vitest run test/service/parameters) -->\n";
const END = "<!-- parameters:end -->";

const groups = documentedGroups();
const declared = declarationsOfTests();

function groupOf(endpoint: string): Group | undefined {
  return groups.find(({ endpoints }) => endpoints.includes(endpoint));
}

function declarationsOf(group: Group, parameter: string): Declaration[] {
  return declared.filter((one) => one.parameter === parameter && group.endpoints.includes(one.endpoint));
}

/** A table for each tag of the document; in it a row with the endpoint comes before those of its parameters. */
function tables(): string {
  const tags = [...new Set(groups.map(({ tag }) => tag))];
  return tags
    .map((tag) => {
      const rows = groups.filter((group) => group.tag === tag).flatMap(rowsOf);
      return `\n### ${tag}\n\n| parameter | measured effect | test |\n| --- | --- | --- |\n${rows.join("\n")}\n`;
    })
    .join("");
}

function rowsOf(group: Group): string[] {
  const rows = group.parameters.flatMap((parameter) =>
    declarationsOf(group, parameter).map(
      ({ effect, file }) => `| \`${parameter}\` | ${effect} | \`${file}\` |`,
    ),
  );
  return [`| **${titleOf(group)}** | | |`, ...rows];
}

/** The first stands for those that take the same. */
function titleOf({ endpoints: [first, ...others] }: Group): string {
  if (others.length === 0) return `${first}`;
  return `${first} and ${others.length === 1 ? "a variant" : `${others.length} variants`}`;
}

describe("the parameters of the interface", () => {
  it("have a test each that measures them", () => {
    const missing = groups.flatMap((group) =>
      group.parameters
        .filter((parameter) => declarationsOf(group, parameter).length === 0)
        .map((parameter) => `${group.endpoints[0]}: ${parameter}`),
    );
    expect(missing).toEqual([]);
  });

  it("are there: no test measures another", () => {
    const unknown = declared.filter(
      ({ endpoint, parameter }) => !groupOf(endpoint)?.parameters.includes(parameter),
    );
    expect(unknown).toEqual([]);
  });

  it("are the tables of docs/endpoints.md", () => {
    const page = readFileSync(PAGE, "utf8");
    const [before, rest = ""] = page.split(BEGIN);
    const [table, after] = rest.split(END);
    if (process.env.UPDATE_DOCS === "1") {
      writeFileSync(PAGE, `${before}${BEGIN}${tables()}${END}${after}`);
      return;
    }
    expect(table).toBe(tables());
  });
});

describe("a call of measures()", () => {
  it("is read in its source, over several lines too", () => {
    const source = 'measures("GET /a", "b", "c");\n  measures(\n    "GET /a",\n    "d",\n    "e",\n  );';
    expect(declarationsIn("a.test.ts", source)).toEqual([
      { endpoint: "GET /a", parameter: "b", effect: "c", file: "a.test.ts" },
      { endpoint: "GET /a", parameter: "d", effect: "e", file: "a.test.ts" },
    ]);
  });

  it("with anything but literals is an error", () => {
    expect(() => declarationsIn("a.test.ts", 'measures(endpoint, "b", "c");')).toThrow("a.test.ts");
  });
});
