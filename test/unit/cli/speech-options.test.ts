import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { parseArguments } from "../../../src/cli/flags.ts";
import {
  PRIORITY_FLAG,
  queueOptionsOf,
  TEXT_FLAGS,
  textOptionsOf,
} from "../../../src/cli/say/speech-options.ts";

const folder = mkdtempSync(join(tmpdir(), "voicewire-options-"));
afterAll(() => rmSync(folder, { recursive: true }));

const parse = (...args: string[]) => parseArguments(args, [...TEXT_FLAGS, PRIORITY_FLAG]);

function file(content: string): string {
  const path = join(folder, "replacements.json");
  writeFileSync(path, content);
  return path;
}

describe("textOptionsOf()", () => {
  test("is empty where nothing was asked for", () => {
    expect(textOptionsOf(parse())).toEqual({});
    expect(queueOptionsOf(parse())).toEqual({});
  });

  test("reads the cleanings", () => {
    expect(textOptionsOf(parse("--clean", "markdown, emoji"))).toEqual({ clean: ["markdown", "emoji"] });
  });

  test("reads every --replace in order, then the file", () => {
    const path = file('[{"from": "nginx", "to": "engine x", "ignore_case": true}]');
    const parsed = parse(
      "--replace",
      "SQL=sequel",
      "--replace=a=b=c",
      "--replace",
      "TM=",
      "--replacements",
      path,
    );
    expect(textOptionsOf(parsed).replacements).toEqual([
      { from: "SQL", to: "sequel" },
      { from: "a", to: "b=c" },
      { from: "TM", to: "" },
      { from: "nginx", to: "engine x", ignore_case: true },
    ]);
  });

  test.each([
    [["--clean", "markdwn"], 'did you mean "markdown"?'],
    [["--clean", ""], "Flag --clean"],
    [["--replace", "SQL"], "expected FROM=TO"],
    [["--replace", "=x"], "expected FROM=TO"],
    [["--replace", `a=${"x".repeat(201)}`], "at most 200 characters"],
    [["--replacements", "/no/such/file"], 'Replacements "/no/such/file" can\'t be read'],
  ])("refuses %j", (args, message) => {
    expect(() => textOptionsOf(parse(...args))).toThrow(message);
  });

  test.each([
    ["secret", "no JSON"],
    ['{"secret": 1}', "expected array"],
    ['[{"from": "secret"}]', "0.to: "],
    ['[{"from": "", "to": "secret"}]', "0.from: "],
  ])("names what is wrong in the file %j, and not its text", (content, message) => {
    const parsed = parse("--replacements", file(content));
    expect(() => textOptionsOf(parsed)).toThrow(message);
    expect(() => textOptionsOf(parsed)).not.toThrow("secret");
  });
});

test("queueOptionsOf() takes -100 to 100", () => {
  expect(queueOptionsOf(parse("--priority", "-100"))).toEqual({ priority: -100 });
  expect(queueOptionsOf(parse("--priority", "100"))).toEqual({ priority: 100 });
  expect(() => queueOptionsOf(parse("--priority", "101"))).toThrow("an integer from -100 to 100");
});
