import { describe, expect, it } from "vitest";
import { withoutTokens } from "../../../src/server/credential.ts";

describe("withoutTokens()", () => {
  it.each([
    ["a=1&token=x&b=%20&single_use_token=y", "a=1&b=%20"],
    ["%74oken=x&a=1", "a=1"],
    ["single%5fuse%5Ftoken=x", ""],
    ["tokens=3&a=token", "tokens=3&a=token"],
    ["a=%20b", "a=%20b"],
    ["", ""],
  ])("of %s leaves %s", (query, expected) => {
    expect(withoutTokens(query)).toBe(expected);
  });
});
