/** Holds values against the document's schemas: the part of JSON Schema 2020-12 that the document uses, and no other. */
import type { JsonSchema } from "../../../src/service/http/json-schema.ts";
import { type Endpoint, type OpenApiDocument, resolve } from "./document.ts";

const KNOWN = new Set([
  ...["$ref", "type", "enum", "const", "anyOf", "oneOf", "properties", "required", "additionalProperties"],
  ...[
    "items",
    "minItems",
    "maxItems",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "maxProperties",
    "pattern",
  ],
  // Said for readers only.
  ...[
    "description",
    "default",
    "examples",
    "deprecated",
    "format",
    "contentEncoding",
    "x-refused-with",
    "x-lines",
  ],
  ...["contentMediaType", "contentSchema"],
]);

/**
 * What is wrong with the value; empty where it fits. An object may have no property that its schema does not name: the
 * document is to be complete. Throws for a keyword that it does not know.
 */
export function faultsOf(document: OpenApiDocument, given: JsonSchema, value: unknown, at = "$"): string[] {
  const schema = resolve(document, given);
  for (const keyword of Object.keys(schema)) {
    if (!KNOWN.has(keyword)) throw new Error(`${at}: no such keyword is known: ${keyword}`);
  }
  const choices = (schema.anyOf ?? schema.oneOf) as readonly JsonSchema[] | undefined;
  if (choices !== undefined) {
    const tried = choices.map((choice) => faultsOf(document, choice, value, at));
    return tried.some((faults) => faults.length === 0) ? [] : [`${at}: none fits`, ...tried.flat()];
  }
  if (schema.const !== undefined && value !== schema.const) return [`${at}: is not ${schema.const}`];
  if (Array.isArray(schema.enum) && !schema.enum.includes(value))
    return [`${at}: ${value} is none of ${schema.enum}`];
  if (schema.type === undefined) return [];
  const types = [schema.type].flat() as string[];
  if (!types.some((type) => isOf(type, value))) return [`${at}: ${JSON.stringify(value)} is not ${types}`];
  if (typeof value === "string") return textFaults(schema, value, at);
  if (typeof value === "number") return within(schema, "imum", value, at);
  if (Array.isArray(value)) {
    const items = (schema.items ?? {}) as JsonSchema;
    const inside = value.flatMap((item: unknown, index) =>
      faultsOf(document, items, item, `${at}[${index}]`),
    );
    return [...within(schema, "Items", value.length, at), ...inside];
  }
  return typeof value === "object" && value !== null ? objectFaults(document, schema, value, at) : [];
}

function textFaults(schema: JsonSchema, value: string, at: string): string[] {
  const faults = within(schema, "Length", [...value].length, at);
  if (typeof schema.pattern === "string" && !new RegExp(schema.pattern, "u").test(value)) {
    faults.push(`${at}: ${value} does not match ${schema.pattern}`);
  }
  return faults;
}

function within(schema: JsonSchema, what: string, size: number, at: string): string[] {
  const least = schema[`min${what}`];
  const most = schema[`max${what}`];
  if (typeof least === "number" && size < least) return [`${at}: ${size} is below ${least}`];
  return typeof most === "number" && size > most ? [`${at}: ${size} is above ${most}`] : [];
}

function objectFaults(document: OpenApiDocument, schema: JsonSchema, value: object, at: string): string[] {
  const properties = schema.properties as Readonly<Record<string, JsonSchema>> | undefined;
  const more = schema.additionalProperties as JsonSchema | boolean | undefined;
  const missing = ((schema.required ?? []) as string[]).filter((name) => !Object.hasOwn(value, name));
  const faults = missing.map((name) => `${at}.${name}: is missing`);
  faults.push(...within(schema, "Properties", Object.keys(value).length, at));
  for (const [name, one] of Object.entries(value)) {
    const property = properties?.[name] ?? (typeof more === "object" ? more : undefined);
    if (property !== undefined) faults.push(...faultsOf(document, property, one, `${at}.${name}`));
    else if (properties !== undefined || more === false) faults.push(`${at}.${name}: is not described`);
  }
  return faults;
}

function isOf(type: string, value: unknown): boolean {
  if (type === "null") return value === null;
  if (type === "array") return Array.isArray(value);
  if (type === "integer") return Number.isInteger(value);
  if (type === "object") return typeof value === "object" && value !== null && !Array.isArray(value);
  return typeof value === type;
}

export interface GivenAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Buffer;
}

/** Their descriptions say when they are absent. */
const OPTIONAL_HEADERS = new Set([
  "history-item-id",
  "x-left-out-tags",
  "x-voicewire-timing",
  "x-voicewire-behind-ms",
  "x-not-understood",
]);

/** What is wrong with an answer of that endpoint. */
export function answerFaults(
  document: OpenApiDocument,
  { operation }: Endpoint,
  answer: GivenAnswer,
): string[] {
  const received = operation.responses[answer.status];
  if (received === undefined)
    return [`the status ${answer.status} is not described: ${answer.body.subarray(0, 300)}`];
  const { content, headers = {} } = resolve(document, received);
  const faults = Object.entries(headers).flatMap(([name, { schema }]) => {
    const value = answer.headers.get(name);
    if (value === null) return OPTIONAL_HEADERS.has(name) ? [] : [`the header ${name} is missing`];
    return faultsOf(document, schema, value, name);
  });
  const type = (answer.headers.get("content-type") ?? "").split(";")[0] ?? "";
  if (content === undefined)
    return answer.body.length === 0 ? faults : [...faults, "a body came, none is described"];
  const media = content[type] ?? content[type.replace(/\/.*/, "/*")];
  if (media === undefined) return [...faults, `the content type ${type} is not described`];
  const schema = resolve(document, media.schema);
  if (schema.format === "binary") return answer.body.length > 0 ? faults : [...faults, "the body is empty"];
  const { "x-lines": isLines, ...plain } = schema;
  const texts = isLines === true ? answer.body.toString().trimEnd().split("\n") : [answer.body.toString()];
  return [...faults, ...texts.flatMap((text) => faultsOf(document, plain, JSON.parse(text) as unknown))];
}
