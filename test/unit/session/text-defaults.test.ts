import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { textDefaultsOf } from "../../../src/session/text-defaults.ts";

let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "rules-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function file(content: string): string {
  const path = join(folder, "rules.json");
  writeFileSync(path, content);
  return path;
}

describe("textDefaultsOf", () => {
  it.each([
    ["", []],
    ["markdown", ["markdown"]],
    [" markdown, emoji ,,urls,code", ["markdown", "emoji", "urls", "code"]],
  ])("reads clean=%j", (clean, expected) => {
    expect(textDefaultsOf({ clean, replacementsFile: "" })).toEqual({ clean: expected, replacements: [] });
  });

  it("reads the rules of a file", () => {
    const rules = [
      { from: "VW", to: "voicewire" },
      { from: "a", to: "", ignore_case: true, whole_word: false },
    ];
    const replacementsFile = file(JSON.stringify(rules));
    expect(textDefaultsOf({ clean: "", replacementsFile }).replacements).toEqual(rules);
  });

  it("names a cleaning that is not known, cut short", () => {
    expect(() => textDefaultsOf({ clean: `markdown,${"x".repeat(500)}`, replacementsFile: "" })).toThrow(
      expect.objectContaining({ code: "invalid_config", field: "clean" }),
    );
    expect(() => textDefaultsOf({ clean: "html", replacementsFile: "" })).toThrow(
      /"html".*markdown, emoji, urls, code/,
    );
  });

  it.each([
    ["no JSON", "{"],
    ["no list", '{"from":"a","to":"b"}'],
    ["a rule without from", '[{"to":"b"}]'],
    ["an empty from", '[{"from":"","to":"b"}]'],
    ["a number", '[{"from":"a","to":1}]'],
  ])("a file with %s is an invalid_config", (_name, content) => {
    const replacementsFile = file(content);
    expect(() => textDefaultsOf({ clean: "", replacementsFile })).toThrow(
      expect.objectContaining({ code: "invalid_config", field: "replacements-file" }),
    );
  });

  it("a file that is not there is an invalid_config that says so", () => {
    expect(() => textDefaultsOf({ clean: "", replacementsFile: join(folder, "none.json") })).toThrow(
      /ENOENT/,
    );
  });
});
