/** Requests made from the document: some that it allows, and some that break one bound each. */
import type { JsonSchema } from "../../../src/service/http/json-schema.ts";
import { bodyOf, type Endpoint, type OpenApiDocument, resolve } from "./document.ts";

type Values = Readonly<Record<string, unknown>>;

export interface DocumentRequest {
  readonly query: Values;
  readonly body: Values;
}

export interface BrokenRequest extends DocumentRequest {
  readonly about: string;
  /** 422, or what the schema says that a bound is refused with. */
  readonly status: number;
  /** From the query or the body down to the value that is wrong. */
  readonly place: readonly (string | number)[];
}

const WORD = "word";

/** A file's place; `sendRequest` puts a recording there. */
export const FILE = Symbol("file");

/** With what is required only; with every field; with null wherever the document allows it. */
export function allowedRequests(document: OpenApiDocument, endpoint: Endpoint): DocumentRequest[] {
  const { query, body } = shapesOf(document, endpoint);
  const make = (how: How) => ({
    query: valid(document, query, how === "nulls" ? "least" : how) as Values,
    body: valid(document, body, how) as Values,
  });
  return (["least", "all", "nulls"] as const).map(make);
}

/** Each a request with what is required, and one thing wrong. */
export function brokenRequests(document: OpenApiDocument, endpoint: Endpoint): BrokenRequest[] {
  const shapes = shapesOf(document, endpoint);
  const least = allowedRequests(document, endpoint)[0] ?? { query: {}, body: {} };
  return (["query", "body"] as const).flatMap((origin) => {
    const isText = origin === "query" || bodyOf(endpoint)?.type === "multipart/form-data";
    const broken = brokenFields(document, shapes[origin], { isText });
    return broken.map(({ value, place, status, about }) => ({
      ...least,
      [origin]: { ...least[origin], ...(value as Values) },
      status,
      place: [origin, ...place],
      about: `${[origin, ...place].join(".")} ${about}`,
    }));
  });
}

type How = "least" | "all" | "nulls";

function shapesOf(document: OpenApiDocument, endpoint: Endpoint): { query: JsonSchema; body: JsonSchema } {
  const parameters = (endpoint.operation.parameters ?? []).filter((one) => one.in === "query");
  const properties = Object.fromEntries(parameters.map(({ name, schema }) => [name, schema]));
  const body = bodyOf(endpoint)?.schema ?? { type: "object", properties: {} };
  return { query: { type: "object", properties }, body: resolve(document, body) };
}

function valid(document: OpenApiDocument, given: JsonSchema, how: How): unknown {
  const schema = resolve(document, given);
  const types = [schema.type].flat();
  if (schema.const !== undefined) return schema.const;
  const [example] = (schema.examples ?? []) as unknown[];
  if (example !== undefined) return example;
  if (schema.default !== undefined) return schema.default;
  if (Array.isArray(schema.enum)) return schema.enum[0];
  if (schema.format === "binary") return FILE;
  if (schema.contentSchema !== undefined) {
    return JSON.stringify(valid(document, schema.contentSchema as JsonSchema, how));
  }
  const [choice] = (schema.anyOf ?? schema.oneOf ?? []) as JsonSchema[];
  if (choice !== undefined) return valid(document, choice, how);
  if (types.includes("object")) {
    const required = (schema.required ?? []) as string[];
    const fields = Object.entries((schema.properties ?? {}) as Readonly<Record<string, JsonSchema>>);
    return Object.fromEntries(
      fields.flatMap(([name, field]) => {
        if (required.includes(name) || how === "all") return [[name, valid(document, field, how)]];
        const isNullable = [resolve(document, field).type].flat().includes("null");
        return how === "nulls" && isNullable ? [[name, null]] : [];
      }),
    );
  }
  if (types.includes("array")) {
    const item = valid(document, schema.items as JsonSchema, how);
    return Number(schema.minItems ?? 0) > 0 || how === "all" ? [item] : [];
  }
  if (types.includes("boolean")) return true;
  if (types.includes("integer") || types.includes("number")) return schema.minimum ?? 1;
  return WORD;
}

interface Broken {
  readonly value: unknown;
  readonly place: readonly (string | number)[];
  readonly status: number;
  readonly about: string;
}

interface Reading {
  /** Everything is a text there: none is of a wrong type, and in a form an empty one is none. */
  readonly isText: boolean;
}

function brokenFields(document: OpenApiDocument, schema: JsonSchema, reading: Reading): Broken[] {
  const required = (schema.required ?? []) as string[];
  const fields = Object.entries((schema.properties ?? {}) as Readonly<Record<string, JsonSchema>>);
  return fields.flatMap(([name, field]) => {
    const wrong = broken(document, resolve(document, field), reading);
    const missing = { value: undefined, place: [], status: 422, about: "is missing" };
    return [...wrong, ...(required.includes(name) ? [missing] : [])].map((one) => ({
      ...one,
      value: { [name]: one.value },
      place: [name, ...one.place],
    }));
  });
}

/** Values that break the schema. */
function broken(document: OpenApiDocument, schema: JsonSchema, reading: Reading): Broken[] {
  const later = typeof schema["x-refused-with"] === "number" ? schema["x-refused-with"] : 422;
  const wrong = (value: unknown, about: string, status = 422): Broken => ({
    value,
    place: [],
    status,
    about,
  });
  const types = [schema.type].flat();
  const found: Broken[] = [];
  if (schema.format === "binary" || (schema.items as JsonSchema | undefined)?.format === "binary") {
    return [wrong("no file", "is a text")];
  }
  if (schema.contentSchema !== undefined) {
    const inside = resolve(document, schema.contentSchema as JsonSchema);
    const deeper = brokenInside(document, inside, { isText: false });
    return [
      wrong("{", "is no JSON"),
      wrong("[]", "is no object"),
      ...deeper.map((one) => ({ ...one, value: JSON.stringify(one.value) })),
    ];
  }
  if (!reading.isText) found.push(wrong(types.includes("string") ? 5 : "wrong", "is of another type"));
  else if (["integer", "number", "boolean"].some((type) => types.includes(type))) {
    found.push(wrong("wrong", "is of another type"));
  }
  if (Array.isArray(schema.enum)) found.push(wrong("wrong", "is none of the words", later));
  found.push(...beyondBounds(document, schema, later, reading));
  return [...found, ...brokenInside(document, schema, reading)];
}

function beyondBounds(
  document: OpenApiDocument,
  schema: JsonSchema,
  status: number,
  reading: Reading,
): Broken[] {
  const { minimum, maximum, minLength, maxLength, minItems, maxItems, maxProperties } = schema;
  const items = (schema.items ?? {}) as JsonSchema;
  const item = (_: unknown, at: number): unknown => {
    const one = valid(document, items, "least");
    return one === WORD ? `${one}-${at}` : one;
  };
  const values: readonly (readonly [unknown, unknown, string])[] = [
    [minimum, Number(minimum) - 1, "is too small"],
    // The largest number that is exact has none above it.
    [maximum === Number.MAX_SAFE_INTEGER ? undefined : maximum, Number(maximum) + 1, "is too large"],
    [reading.isText ? undefined : minLength, "", "is too short"],
    [maxLength, "x".repeat(Number(maxLength ?? 0) + 1), "is too long"],
    [minItems, [], "has too few"],
    [maxItems, Array.from({ length: Number(maxItems ?? 0) + 1 }, item), "has too many"],
    [
      maxProperties,
      Object.fromEntries(Array.from({ length: Number(maxProperties ?? 0) + 1 }, (_, at) => [`x-${at}`, "y"])),
      "has too many",
    ],
  ];
  return values.flatMap(([bound, value, about]) =>
    bound === undefined ? [] : [{ value, place: [], status, about }],
  );
}

/** Sound but for what is in it. */
function brokenInside(document: OpenApiDocument, schema: JsonSchema, reading: Reading): Broken[] {
  if (schema.properties !== undefined) {
    const least = valid(document, schema, "least") as Values;
    const fields = brokenFields(document, schema, reading);
    return fields.map((one) => ({ ...one, value: { ...least, ...(one.value as Values) } }));
  }
  if (typeof schema.additionalProperties === "object") {
    return [{ value: { key: 5 }, place: ["key"], status: 422, about: "is of another type" }];
  }
  if (schema.items === undefined || reading.isText) return [];
  const items = resolve(document, schema.items as JsonSchema);
  if (items.oneOf !== undefined) return [];
  return broken(document, items, reading).map((one) => ({
    ...one,
    value: [one.value],
    place: [0, ...one.place],
  }));
}
