/**
 * What a request may hold, declared once. From a declaration come the reading, which coerces and refuses the way pydantic v2
 * does in its lax mode and gathers every fault in its words, and the JSON Schema that the OpenAPI document shows.
 * Unknown fields are ignored, and named; null stands for an absent optional field.
 */
import { MAX_IGNORED } from "../../kit/ignored-names.ts";
import type { ValidationEntry } from "../api-error.ts";
import { type JsonSchema, nullable } from "./json-schema.ts";

type Place = readonly (string | number)[];

/** Where a value comes from: what repeats in a query is a list or its last value. */
type Origin = "body" | "query" | "path";

export interface Reading {
  readonly place: Place;
  readonly origin: Origin;
  /** Gathers what is wrong. */
  readonly faults: ValidationEntry[];
  /** Gathers the names of what no field is declared for; each with those of the objects around it. */
  readonly ignored?: string[];
  /** What was read of the same object so far, by name. */
  readonly siblings?: Readonly<Record<string, unknown>>;
}

/** A kind of value. */
export interface Schema<T> {
  /** Undefined where the value is at fault, which the error then says. Not called for absent values. */
  read(value: unknown, at: Reading): T | undefined;
  /** Whether it is of the kind at all, else a fault: lists ask this of all their items before they read the first. */
  isKind?(value: unknown, at: Reading): boolean;
  readonly json: JsonSchema;
  readonly isList?: boolean;
  /** A part of a form that is a file (form.ts). */
  readonly isFile?: boolean;
}

/** A field of an object: a kind of value and what its absence means. */
export interface Field<T> {
  readonly schema: Schema<unknown>;
  readonly isRequired: boolean;
  /** What an absent one counts as. */
  readonly fallback: T | undefined;
  /** With its description and default; without null. */
  readonly json: JsonSchema;
}

export type Shape = Readonly<Record<string, Field<unknown>>>;

/** What an object of that shape is read as. */
export type Values<S extends Shape> = {
  readonly [Name in keyof S]: S[Name] extends Field<infer T> ? T : never;
};

/** A shape, and the object's reading and description. */
export interface ObjectSchema<S extends Shape> extends Schema<Values<S>> {
  readonly shape: S;
}

/** What the document says of a field besides. */
interface About {
  readonly description: string;
  readonly deprecated?: boolean;
}

export function required<T>(schema: Schema<T>, description: string): Field<T> {
  return { schema, isRequired: true, fallback: undefined, json: { ...schema.json, description } };
}

export function optional<T>(
  schema: Schema<T>,
  description: string,
  about: Omit<About, "description"> = {},
): Field<T | undefined> {
  const json = { ...schema.json, description, ...about };
  return { schema, isRequired: false, fallback: undefined, json };
}

export function withDefault<T>(schema: Schema<T>, fallback: T, description: string): Field<T> {
  const json = { ...schema.json, description, default: fallback };
  return { schema, isRequired: false, fallback, json };
}

export function object<const S extends Shape>(shape: S): ObjectSchema<S> {
  const isKind = (value: unknown, at: Reading): boolean => {
    if (isRecord(value)) return true;
    const msg = "Input should be a valid dictionary or object to extract fields from";
    at.faults.push({ type: "model_attributes_type", loc: at.place, msg, input: value });
    return false;
  };
  return {
    shape,
    isKind,
    read: (value, at) =>
      isKind(value, at) && isRecord(value)
        ? readFields(shape, value, { ...at, missingInput: value })
        : undefined,
    json: jsonOfShape(shape, { isJson: true }),
  };
}

/** An object's JSON Schema; in JSON its optional fields may also be null. */
export function jsonOfShape(shape: Shape, options: { readonly isJson: boolean }): JsonSchema {
  const fields = Object.entries(shape);
  const names = fields.filter(([, field]) => field.isRequired).map(([name]) => name);
  const properties = fields.map(([name, { json, isRequired }]) => [
    name,
    options.isJson && !isRequired ? nullable(json) : json,
  ]);
  return {
    type: "object",
    properties: Object.fromEntries(properties),
    ...(names.length > 0 ? { required: names } : {}),
  };
}

/** The values of a body, a query or a path; undefined where something is at fault. */
export function readShape<S extends Shape>(
  shape: S,
  source: Readonly<Record<string, unknown>>,
  at: Omit<Reading, "place" | "siblings">,
): Values<S> | undefined {
  // To pydantic the fields of a body are parameters of their own: what is missing has no object around it.
  return readFields(shape, source, { ...at, place: [at.origin], missingInput: null });
}

/** Told of each field of a body that is no object at all, optional or not, as live answers show. */
export function allMissing(shape: Shape): ValidationEntry[] {
  return Object.keys(shape).map((name) => missing(["body", name], null));
}

function missing(loc: Place, input: unknown): ValidationEntry {
  return { type: "missing", loc, msg: "Field required", input };
}

interface FieldsReading extends Reading {
  /** What pydantic shows as the input of a missing field: the object, or null for the fields of a body. */
  readonly missingInput: unknown;
}

function readFields<S extends Shape>(
  shape: S,
  source: Readonly<Record<string, unknown>>,
  at: FieldsReading,
): Values<S> | undefined {
  const faultsBefore = at.faults.length;
  noteIgnored(shape, source, at);
  const values: Record<string, unknown> = {};
  for (const [name, field] of Object.entries(shape)) {
    const given = Object.hasOwn(source, name) ? source[name] : undefined;
    const value = givenValue(given, field.schema, at.origin);
    const place = [...at.place, name];
    if (isAbsent(value, field, at)) {
      if (field.isRequired) at.faults.push(missing(place, at.missingInput));
      values[name] = field.fallback;
    } else values[name] = field.schema.read(value, { ...at, place, siblings: values });
  }
  // Every field was read by its own schema: the record is what the shape says.
  return at.faults.length > faultsBefore ? undefined : (values as Values<S>);
}

function noteIgnored(
  shape: Shape,
  source: Readonly<Record<string, unknown>>,
  { place, ignored }: Reading,
): void {
  if (ignored === undefined) return;
  for (const name of Object.keys(source)) {
    if (ignored.length >= MAX_IGNORED) return;
    if (!Object.hasOwn(shape, name)) ignored.push([...place.slice(1), name].join("."));
  }
}

/** Null is absent, but for a required field inside an object, where it is a value of the wrong type. */
function isAbsent(value: unknown, field: Field<unknown>, at: FieldsReading): boolean {
  if (value === undefined) return true;
  return value === null && (!field.isRequired || at.missingInput === null);
}

function givenValue(given: unknown, schema: Schema<unknown>, origin: Origin): unknown {
  if (origin !== "query" || given === undefined) return given;
  if (schema.isList === true) return Array.isArray(given) ? given : [given];
  return Array.isArray(given) ? given.at(-1) : given;
}

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
