import { describe, expect, it } from "vitest";
import { findBadText } from "../../../src/text/check.ts";
import { FIXTURES } from "./fixtures.ts";

describe("findBadText", () => {
  it("finds nothing in good text of any script, tab, line feed and carriage return included", () => {
    for (const text of [...FIXTURES, "a\tb\nc\r\n", "😀", "\u2028\ufeff\u200d"])
      expect(findBadText(text)).toBeNull();
  });

  it.each([
    ["ab\ud83d", 2, "lone_surrogate"],
    ["\ude00", 0, "lone_surrogate"],
    ["😀\ude00", 2, "lone_surrogate"],
    ["\ud83d\ud83d\ude00", 0, "lone_surrogate"],
    ["a\u0000b", 1, "control_character"],
    ["a\u001b[1m", 1, "control_character"],
    ["\u007f", 0, "control_character"],
    ["ok\u009b", 2, "control_character"],
    ["\u0007\ud83d", 0, "control_character"],
  ] as const)("finds what is wrong in %j at %i", (text, index, reason) => {
    expect(findBadText(text)).toEqual({ index, reason });
  });

  it("finds the end of a megabyte", () => {
    expect(findBadText(`${"x".repeat(1_000_000)}\ud800`)?.index).toBe(1_000_000);
  });
});
