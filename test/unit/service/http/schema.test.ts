import { describe, expect, it } from "vitest";
import type { ValidationEntry } from "../../../../src/service/api-error.ts";
import {
  anyObject,
  boolean,
  dependent,
  enumeration,
  integer,
  jsonText,
  list,
  literal,
  number,
  text,
  textMap,
} from "../../../../src/service/http/kinds.ts";
import {
  allMissing,
  jsonOfShape,
  object,
  optional,
  readShape,
  required,
  type Schema,
  withDefault,
} from "../../../../src/service/http/schema.ts";

/** The value of the one field "a". */
function read<T>(schema: Schema<T>, given: unknown, origin: "body" | "query" = "body") {
  const faults: ValidationEntry[] = [];
  const values = readShape({ a: optional(schema, "A.") }, { a: given }, { origin, faults });
  return { value: values?.a, faults };
}

const types = (faults: readonly ValidationEntry[]) => faults.map(({ type, loc }) => [type, loc.join(".")]);

describe("kinds of values", () => {
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
    expect(read(boolean(), given)).toEqual({ value: expected, faults: [] });
  });

  it("boolean() refuses in pydantic's words", () => {
    const msg = "Input should be a valid boolean, unable to interpret input";
    expect(read(boolean(), "maybe").faults).toEqual([
      { type: "bool_parsing", loc: ["body", "a"], msg, input: "maybe" },
    ]);
    expect(read(boolean(), []).faults[0]?.type).toBe("bool_type");
  });

  it("a text of more than 64 characters is no number", () => {
    const zeros = "0".repeat(62);
    expect(read(number(), `${zeros}.5`).value).toBe(0.5);
    expect(read(number(), `0${zeros}.5`).faults[0]?.type).toBe("float_parsing");
    expect(read(integer(), `${zeros}15`).value).toBe(15);
    expect(read(integer(), `0${zeros}15`).faults[0]?.type).toBe("int_parsing");
  });

  it("integer() coerces whole numbers and refuses the rest", () => {
    for (const given of [5, "5", 5.0, "5.0"]) expect(read(integer(), given).value).toBe(5);
    expect(read(integer(), true).value).toBe(1);
    expect([1.5, "x", {}].map((given) => read(integer(), given).faults[0]?.type)).toEqual([
      "int_from_float",
      "int_parsing",
      "int_type",
    ]);
  });

  it("number() checks its range inclusively", () => {
    const at = (given: unknown) => read(number({ range: { min: 0, max: 1 } }), given);
    expect([0, 1, "0.5", true].map((given) => at(given).value)).toEqual([0, 1, 0.5, 1]);
    const msg = "Input should be less than or equal to 1";
    expect(at(1.01).faults).toEqual([
      { type: "less_than_equal", loc: ["body", "a"], msg, input: 1.01, ctx: { le: 1 } },
    ]);
    expect(at("-0.01").faults[0]).toMatchObject({
      type: "greater_than_equal",
      input: "-0.01",
      ctx: { ge: 0 },
    });
    expect(at("x").faults[0]?.type).toBe("float_parsing");
    expect(at([]).faults[0]?.type).toBe("float_type");
    expect(at(null)).toEqual({ value: undefined, faults: [] });
  });

  it("text() refuses other types, lone surrogates, and lengths out of its bounds in code points", () => {
    const msg = "Input should be a valid string";
    expect(read(text(), 5).faults).toEqual([{ type: "string_type", loc: ["body", "a"], msg, input: 5 }]);
    expect(read(text(), "x\ud800").faults[0]).toMatchObject({ type: "string_unicode", input: "x\ufffd" });
    const short = text({ minLength: 1, maxLength: 2 });
    expect(read(short, "😀😀").value).toBe("😀😀");
    expect(read(short, "").faults[0]).toMatchObject({ type: "string_too_short", ctx: { min_length: 1 } });
    expect(read(short, "abc").faults[0]).toMatchObject({ type: "string_too_long", ctx: { max_length: 2 } });
  });

  it("literal() and enumeration() name their words", () => {
    const ctx = { expected: "'x', 'y' or 'z'" };
    const msg = `Input should be ${ctx.expected}`;
    const loc = ["body", "a"];
    expect(read(literal(["x", "y", "z"]), 1).faults).toEqual([
      { type: "literal_error", loc, msg, input: 1, ctx },
    ]);
    expect(read(enumeration(["hmac"]), "x").faults[0]).toMatchObject({
      type: "enum",
      msg: "Input should be 'hmac'",
    });
    expect(read(literal(["x"]), "x").value).toBe("x");
  });

  it("list() asks all items for their kind before it reads the first", () => {
    const inputs = list(object({ t: required(text(), "T.") }));
    expect(types(read(inputs, [{}, "y", { t: 1 }]).faults)).toEqual([
      ["model_attributes_type", "body.a.1"],
      ["missing", "body.a.0.t"],
      ["string_type", "body.a.2.t"],
    ]);
    expect(types(read(list(text()), "x").faults)).toEqual([["list_type", "body.a"]]);
    expect(read(inputs, [{ t: "x" }]).value).toEqual([{ t: "x" }]);
  });

  it("a query's list is what repeats, its other values are the last of them", () => {
    expect(read(list(text()), "x", "query").value).toEqual(["x"]);
    expect(read(list(text()), ["x", "y"], "query").value).toEqual(["x", "y"]);
    expect(read(integer(), ["x", "7"], "query").value).toBe(7);
    expect(types(read(integer(), ["7"], "body").faults)).toEqual([["int_type", "body.a"]]);
  });

  it("textMap() bounds its size without showing what was in it, and cuts keys that it shows", () => {
    const one = textMap({ maxItems: 1 });
    expect(read(one, { k: "v" }).value).toEqual({ k: "v" });
    expect(read(one, { k: "secret", l: "secret" }).faults[0]).toMatchObject({
      type: "too_long",
      input: null,
    });
    expect(types(read(one, { ["k".repeat(99)]: 1 }).faults)).toEqual([
      ["string_type", `body.a.${"k".repeat(64)}`],
    ]);
    expect(types(read(one, "x").faults)).toEqual([["dict_type", "body.a"]]);
  });

  it("jsonText() reads an object out of a text", () => {
    const settings = jsonText(object({ n: optional(number(), "N."), t: required(text(), "T.") }));
    expect(read(settings, '{"n": "1.5", "t": ""}').value).toEqual({ n: 1.5, t: "" });
    expect(read(settings, "null")).toEqual({ value: undefined, faults: [] });
    expect(types(read(settings, "{").faults)).toEqual([["json_invalid", "body.a"]]);
    expect(types(read(settings, "[]").faults)).toEqual([["dict_type", "body.a"]]);
    expect(read(settings, "{}").faults[0]).toMatchObject({
      type: "missing",
      loc: ["body", "a", "t"],
      input: {},
    });
  });

  it("dependent() says nothing where what it hangs on is at fault", () => {
    const words = { x: ["one"], y: ["two"] } as const;
    const shape = {
      kind: required(enumeration(["x", "y"]), "K."),
      word: optional(
        dependent(({ kind }) => (kind === "x" || kind === "y" ? enumeration(words[kind]) : undefined), {}),
        "W.",
      ),
    };
    const of = (source: Record<string, unknown>) => {
      const faults: ValidationEntry[] = [];
      return { values: readShape(shape, source, { origin: "body", faults }), faults: types(faults) };
    };
    expect(of({ kind: "x", word: "one" }).values).toEqual({ kind: "x", word: "one" });
    expect(of({ kind: "y", word: "one" }).faults).toEqual([["enum", "body.word"]]);
    expect(of({ kind: "z", word: "one" }).faults).toEqual([["enum", "body.kind"]]);
  });

  it("anyObject() takes any", () => {
    expect(read(anyObject(), { x: [1] }).value).toEqual({ x: [1] });
    expect(types(read(anyObject(), []).faults)).toEqual([["model_attributes_type", "body.a"]]);
  });
});

describe("fields", () => {
  const shape = {
    name: required(text(), "Its name."),
    size: withDefault(integer({ range: { min: 1, max: 9 } }), 3, "Its size."),
    parts: optional(object({ id: required(text(), "Which.") }), "Its parts.", { deprecated: true }),
    speed: optional(number({ later: { maximum: 2 }, examples: [1] }), "How fast."),
  };
  const of = (source: Record<string, unknown>) => {
    const faults: ValidationEntry[] = [];
    return { values: readShape(shape, source, { origin: "body", faults }), faults };
  };

  it("have their defaults where they are absent or null, and everything else is ignored", () => {
    expect(of({ name: "x", size: null, more: 1 })).toEqual({
      values: { name: "x", size: 3, parts: undefined, speed: undefined },
      faults: [],
    });
    expect(of({ name: "x", speed: 7 }).values?.speed).toBe(7);
  });

  it("that are required are missing where null in a body, and of the wrong type where null in an object", () => {
    const missing = { type: "missing", msg: "Field required" };
    expect(of({ name: null }).faults).toEqual([{ ...missing, loc: ["body", "name"], input: null }]);
    expect(of({ name: "x", parts: {} }).faults).toEqual([
      { ...missing, loc: ["body", "parts", "id"], input: {} },
    ]);
    expect(types(of({ name: "x", parts: { id: null } }).faults)).toEqual([["string_type", "body.parts.id"]]);
    expect(of({ name: "x", parts: {} }).values).toBeUndefined();
  });

  it("gather every fault in their order, and none of them is an inherited property", () => {
    expect(types(of({ speed: "x", size: 0, name: 1 }).faults)).toEqual([
      ["string_type", "body.name"],
      ["greater_than_equal", "body.size"],
      ["float_parsing", "body.speed"],
    ]);
    const faults: ValidationEntry[] = [];
    const inherited = { constructor: optional(text(), "None.") };
    expect(readShape(inherited, {}, { origin: "body", faults })?.constructor).toBeUndefined();
    expect(faults).toEqual([]);
  });

  it("are all missing from a body that is no object", () => {
    expect(types(allMissing(shape)).map(([, place]) => place)).toEqual([
      "body.name",
      "body.size",
      "body.parts",
      "body.speed",
    ]);
  });

  it("are described as they are read: in JSON what is optional may be null", () => {
    const size = { type: "integer", minimum: 1, maximum: 9, description: "Its size.", default: 3 };
    const inParts = {
      type: "object",
      properties: { id: { type: "string", description: "Which." } },
      required: ["id"],
    };
    const parts = { ...inParts, description: "Its parts.", deprecated: true };
    const speed = {
      type: "number",
      maximum: 2,
      "x-refused-with": 400,
      examples: [1],
      description: "How fast.",
    };
    const name = { type: "string", description: "Its name." };
    expect(jsonOfShape(shape, { isJson: false })).toEqual({
      type: "object",
      properties: { name, size, parts, speed },
      required: ["name"],
    });
    expect(jsonOfShape(shape, { isJson: true })).toMatchObject({
      properties: {
        name,
        size: { ...size, type: ["integer", "null"] },
        parts: { type: ["object", "null"] },
        speed: { type: ["number", "null"] },
      },
    });
    expect(jsonOfShape({ w: optional(literal(["x"]), "W.") }, { isJson: true }).properties).toEqual({
      w: { type: ["string", "null"], enum: ["x", null], description: "W." },
    });
  });
});
