import { describe, expect, it } from "vitest";
import { Fields } from "../../../../src/service/http/pydantic.ts";
import type { ValidationEntry } from "../../../../src/service/http/refusal.ts";

function read<T>(
  source: Record<string, unknown>,
  reading: (fields: Fields) => T,
): { value: T; faults: ValidationEntry[] } {
  const faults: ValidationEntry[] = [];
  return { value: reading(new Fields(source, { place: ["body"], faults })), faults };
}

describe("Fields", () => {
  it.each([
    [true, true],
    ["TRUE", true],
    ["yes", true],
    ["on", true],
    [1, true],
    ["0", false],
    ["off", false],
    [0, false],
    ["n", false],
  ])("boolean() takes %j as %j", (given, expected) => {
    expect(read({ a: given }, (fields) => fields.boolean("a"))).toEqual({ value: expected, faults: [] });
  });
  it("boolean() refuses in pydantic's words", () => {
    expect(read({ a: "maybe" }, (fields) => fields.boolean("a")).faults).toEqual([
      {
        type: "bool_parsing",
        loc: ["body", "a"],
        msg: "Input should be a valid boolean, unable to interpret input",
        input: "maybe",
      },
    ]);
    expect(read({ a: [] }, (fields) => fields.boolean("a")).faults[0]?.type).toBe("bool_type");
  });
  it("integer() coerces whole numbers and refuses the rest", () => {
    for (const given of [5, "5", 5.0, "5.0"]) expect(read({ a: given }, (f) => f.integer("a")).value).toBe(5);
    expect(read({ a: true }, (fields) => fields.integer("a")).value).toBe(1);
    const types = [1.5, "x", {}].map((given) => read({ a: given }, (f) => f.integer("a")).faults[0]?.type);
    expect(types).toEqual(["int_from_float", "int_parsing", "int_type"]);
  });
  it("number() checks its range inclusively", () => {
    const at = (given: unknown) => read({ a: given }, (f) => f.number("a", { min: 0, max: 1 }));
    expect([0, 1, "0.5", true].map((given) => at(given).value)).toEqual([0, 1, 0.5, 1]);
    expect(at(1.01).faults).toEqual([
      {
        type: "less_than_equal",
        loc: ["body", "a"],
        msg: "Input should be less than or equal to 1",
        input: 1.01,
        ctx: { le: 1 },
      },
    ]);
    expect(at(-0.01).faults[0]?.type).toBe("greater_than_equal");
    expect(at("x").faults[0]?.type).toBe("float_parsing");
    expect(at(null)).toEqual({ value: undefined, faults: [] });
  });
  it("text() refuses other types and lone surrogates", () => {
    expect(read({ a: 5 }, (fields) => fields.text("a")).faults).toEqual([
      { type: "string_type", loc: ["body", "a"], msg: "Input should be a valid string", input: 5 },
    ]);
    expect(read({ a: "x\ud800" }, (fields) => fields.requiredText("a")).faults[0]?.type).toBe(
      "string_unicode",
    );
    expect(read({ a: "😀" }, (fields) => fields.text("a")).value).toBe("😀");
  });
  it("places faults in lists and objects", () => {
    const faults = read({ l: ["x", 1], o: { t: 1 }, s: [{}, "y"] }, (fields) => {
      fields.textList("l");
      fields.object("o")?.requiredText("t");
      for (const item of fields.objectList("s", { isRequired: true }) ?? []) item.requiredText("t");
    }).faults;
    // A list's own faults come first, its items' fields after.
    expect(faults.map((fault) => [fault.type, fault.loc.join(".")])).toEqual([
      ["string_type", "body.l.1"],
      ["string_type", "body.o.t"],
      ["model_attributes_type", "body.s.1"],
      ["missing", "body.s.0.t"],
    ]);
  });
  it("does not take inherited properties for fields", () => {
    expect(read({}, (fields) => fields.text("constructor"))).toEqual({ value: undefined, faults: [] });
  });
});
