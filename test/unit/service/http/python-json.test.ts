import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { findJsonFault } from "../../../../src/service/http/python-json.ts";

describe("findJsonFault()", () => {
  // Messages and positions as CPython 3.12's json.loads reports them.
  it.each([
    ["", "Expecting value", 0],
    ["{", "Expecting property name enclosed in double quotes", 1],
    ['{"a": }', "Expecting value", 6],
    ['{"a" 1}', "Expecting ':' delimiter", 5],
    ['{"a": 1 "b": 2}', "Expecting ',' delimiter", 8],
    ['{"a": "x', "Unterminated string starting at", 6],
    ['{"a": 1} x', "Extra data", 9],
    ['{"a": "\\q"}', "Invalid \\escape", 7],
    ['{"a": "\\u12x"}', "Invalid \\uXXXX escape", 8],
    ['{"a": "x\ny"}', "Invalid control character at", 8],
    ["[1, 2", "Expecting ',' delimiter", 5],
    ['{"😀": x}', "Expecting value", 6],
  ])("%j: %s at %i", (text, message, position) => expect(findJsonFault(text)).toEqual({ message, position }));

  it("ends on any text, deep nesting too", () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(...'{}[]":,\\u0123 atrue\n') }), (text) => {
        expect(findJsonFault(text).position).toBeLessThanOrEqual(text.length);
      }),
    );
    expect(findJsonFault("[".repeat(100_000)).message).toBe("Expecting value");
  });
});
