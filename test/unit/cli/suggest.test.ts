import { describe, expect, test } from "vitest";
import { nearest } from "../../../src/cli/suggest.ts";

describe("nearest()", () => {
  const known = ["serve", "say", "listen", "service", "doctor"];

  test.each([
    ["sreve", "serve"],
    ["servce", "serve"],
    ["lisen", "listen"],
    ["docter", "doctor"],
    ["SAY", "say"],
    ["doc", "doctor"],
  ])("finds what %s was meant to be", (typed, expected) => {
    expect(nearest(typed, known)).toBe(expected);
  });

  test.each(["x", "telephone", ""])('finds nothing for "%s"', (typed) => {
    expect(nearest(typed, known)).toBeUndefined();
  });
});
