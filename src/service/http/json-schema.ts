/** JSON Schema 2020-12 as OpenAPI 3.1 has it: the few pieces that the descriptions of requests and answers are made of. */

/** Where the meaning of a `$ref` is kept; not part of the JSON. */
export const DEFINITION: unique symbol = Symbol("definition");

export interface JsonSchema {
  readonly [keyword: string]: unknown;
  readonly [DEFINITION]?: JsonSchema;
}

export const STRING: JsonSchema = { type: "string" };
export const NUMBER: JsonSchema = { type: "number" };
export const INTEGER: JsonSchema = { type: "integer" };
export const BOOLEAN: JsonSchema = { type: "boolean" };
export const NULL: JsonSchema = { type: "null" };

const REF_PREFIX = "#/components/schemas/";

/** A reference to `schema`, which the document lists once under its name. One name, one meaning. */
export function named(name: string, schema: JsonSchema): JsonSchema {
  return { $ref: REF_PREFIX + name, [DEFINITION]: schema };
}

/** The name that a reference of `named` bears. */
export function nameOf(reference: JsonSchema): string {
  return String(reference.$ref).slice(REF_PREFIX.length);
}

/** The same, or null. */
export function nullable(schema: JsonSchema): JsonSchema {
  const { type } = schema;
  // A schema without a type takes anything already.
  if (type === undefined && schema.$ref === undefined && schema.anyOf === undefined) return schema;
  if (typeof type !== "string") return { anyOf: [schema, NULL] };
  const choices = Array.isArray(schema.enum) ? { enum: [...schema.enum, null] } : {};
  return { ...schema, type: [type, "null"], ...choices };
}

export function listOf(items: JsonSchema): JsonSchema {
  return { type: "array", items };
}

export function oneOf(choices: readonly unknown[]): JsonSchema {
  return { type: "string", enum: [...choices] };
}

export function mapOf(values: JsonSchema): JsonSchema {
  return { type: "object", additionalProperties: values };
}

/** An object of an answer: every property is there, but for the optional ones. */
export function record(
  properties: Readonly<Record<string, JsonSchema>>,
  optional: readonly string[] = [],
): JsonSchema {
  const required = Object.keys(properties).filter((name) => !optional.includes(name));
  return { type: "object", properties, ...(required.length > 0 ? { required } : {}) };
}

/** Properties that all have the same schema. */
export function eachOf(names: readonly string[], schema: JsonSchema): Readonly<Record<string, JsonSchema>> {
  return Object.fromEntries(names.map((name) => [name, schema]));
}
