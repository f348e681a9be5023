import { describe, expect, test } from "vitest";
import { choiceFlag, type Flag, integerFlag, parseArguments } from "../../../src/cli/flags.ts";

const FLAGS: readonly Flag[] = [
  { name: "out", short: "o", value: "FILE", about: "" },
  { name: "url", value: "URL", about: "" },
  { name: "upstream-url", value: "URL", about: "" },
  { name: "json", about: "" },
  { name: "secret-thing", about: "", isHidden: true },
];

describe("parseArguments()", () => {
  test("takes values after a blank, after = and after a short flag", () => {
    const parsed = parseArguments(["--out", "a.wav", "--url=http://x/?a=b", "hello", "world"], FLAGS);
    expect(parsed.text("out")).toBe("a.wav");
    expect(parsed.text("url")).toBe("http://x/?a=b");
    expect(parsed.positionals).toEqual(["hello", "world"]);
    expect(parseArguments(["-o", "b.ogg"], FLAGS).text("out")).toBe("b.ogg");
  });

  test("keeps every value of a repeated flag, in order; the last one is its value", () => {
    const parsed = parseArguments(["--url", "a", "--out", "x", "--url=b"], FLAGS);
    expect(parsed.all("url")).toEqual(["a", "b"]);
    expect(parsed.text("url")).toBe("b");
    expect(parsed.all("upstream-url")).toEqual([]);
  });

  test("takes a lone dash as a value and as an argument", () => {
    expect(parseArguments(["--out", "-"], FLAGS).text("out")).toBe("-");
    expect(parseArguments(["-"], FLAGS).positionals).toEqual(["-"]);
  });

  test("leaves everything behind -- alone", () => {
    const parsed = parseArguments(["--json", "--", "--out", "-x"], FLAGS);
    expect(parsed.has("json")).toBe(true);
    expect(parsed.positionals).toEqual(["--out", "-x"]);
    expect(parsed.text("out")).toBeUndefined();
  });

  test("lets the last of --switch and --no-switch win", () => {
    expect(parseArguments(["--json", "--no-json"], FLAGS).has("json")).toBe(false);
    expect(parseArguments(["--no-json", "--json"], FLAGS).has("json")).toBe(true);
  });

  test.each([
    ["--ouf", 'Unknown flag "--ouf"; did you mean "--out"?'],
    ["--upstream", 'Unknown flag "--upstream"; did you mean "--upstream-url"?'],
    ["--completely-else", 'Unknown flag "--completely-else": see --help'],
    ["--secret-thin", 'Unknown flag "--secret-thin": see --help'],
    ["-x", 'Unknown flag "-x": see --help, or put "--" before text that begins with a dash'],
    ["--json=yes", 'Flag --json: takes no value, got "yes"'],
  ])("refuses %s and says what is meant", (argument, message) => {
    expect(() => parseArguments([argument], FLAGS)).toThrow(message);
  });

  test("refuses a flag whose value is missing, at the end and before another flag", () => {
    expect(() => parseArguments(["--out"], FLAGS)).toThrow("Flag --out: has no value, expected --out FILE");
    expect(() => parseArguments(["--out", "--json"], FLAGS)).toThrow("expected --out FILE");
  });
});

describe("integerFlag()", () => {
  const range = { min: 1, max: 64, fallback: 7 };
  const read = (text: string) => integerFlag(parseArguments(["--out", text], FLAGS), "out", range);

  test("takes the bounds and falls back where the flag is absent", () => {
    expect([read("1"), read("64"), integerFlag(parseArguments([], FLAGS), "out", range)]).toEqual([1, 64, 7]);
  });

  test.each(["0", "65", "-1", "1.5", "1e1", "x", ""])('refuses "%s" with the range', (text) => {
    expect(() => integerFlag(parseArguments([`--out=${text}`], FLAGS), "out", range)).toThrow(
      `Flag --out: "${text}", expected an integer from 1 to 64`,
    );
  });
});

test("choiceFlag() suggests the choice that was meant", () => {
  const parsed = parseArguments(["--out", "pcm_2400"], FLAGS);
  expect(() => choiceFlag(parsed, "out", ["ulaw_8000", "pcm_24000"])).toThrow(
    'Flag --out: "pcm_2400", expected one of ulaw_8000, pcm_24000; did you mean "pcm_24000"?',
  );
});
