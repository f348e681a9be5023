/** The kinds of values that requests are made of: see schema.ts. */
import type { ValidationEntry } from "../api-error.ts";
import { BOOLEAN, INTEGER, type JsonSchema, listOf, mapOf, NUMBER, oneOf, STRING } from "./json-schema.ts";
import { isRecord, type Reading, type Schema } from "./schema.ts";

const TRUE_WORDS: ReadonlySet<unknown> = new Set([true, 1, "true", "1", "t", "y", "yes", "on"]);
const FALSE_WORDS: ReadonlySet<unknown> = new Set([false, 0, "false", "0", "f", "n", "no", "off"]);
const INTEGER_TEXT = /^\s*[-+]?\d+(?:\.0+)?\s*$/;
const NUMBER_TEXT = /^\s*[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?\s*$/;
/** A longer text is no number: no double needs more. */
const MAX_NUMBER_CHARS = 64;
/** Characters of a wrong JSON text, and of a wrong map's key, that the answer repeats. */
const MAX_SHOWN = 200;
const MAX_SHOWN_KEY = 64;

interface Described {
  /** Bounds that are judged after the key, with 400 and the field's name: keywords of JSON Schema. */
  readonly later?: JsonSchema;
  readonly examples?: readonly unknown[];
}

/** In characters (code points). */
interface TextOptions extends Described {
  readonly minLength?: number;
  readonly maxLength?: number;
}

/** Inclusive. */
interface Range {
  readonly min: number;
  readonly max: number;
}

interface NumberOptions extends Described {
  readonly range?: Range;
}

export function text(options: TextOptions = {}): Schema<string> {
  const { minLength, maxLength } = options;
  return {
    read: (value, at) => {
      if (typeof value !== "string" || !isUnicode(value)) {
        fault(at, wrongText(value));
        return undefined;
      }
      if (minLength === undefined && maxLength === undefined) return value;
      return isOfLength(value, at, options) ? value : undefined;
    },
    json: described(
      {
        ...STRING,
        ...(minLength === undefined ? {} : { minLength }),
        ...(maxLength === undefined ? {} : { maxLength }),
      },
      options,
    ),
  };
}

export function boolean(): Schema<boolean> {
  return {
    read: (value, at) => {
      const key = typeof value === "string" ? value.toLowerCase() : value;
      if (TRUE_WORDS.has(key)) return true;
      if (FALSE_WORDS.has(key)) return false;
      const isWord = typeof value === "string" || typeof value === "number";
      const unable = isWord ? ", unable to interpret input" : "";
      const type = isWord ? "bool_parsing" : "bool_type";
      return fault(at, { type, msg: `Input should be a valid boolean${unable}`, input: value });
    },
    json: BOOLEAN,
  };
}

export function integer(options: NumberOptions = {}): Schema<number> {
  return {
    read: (value, at) => {
      const isWhole =
        typeof value === "number"
          ? Number.isInteger(value)
          : typeof value === "string" && isNumberText(value, INTEGER_TEXT);
      if (isWhole || typeof value === "boolean") return within(Number(value), value, at, options.range);
      const msg = "Input should be a valid integer";
      if (typeof value === "number") {
        const fraction = `${msg}, got a number with a fractional part`;
        return fault(at, { type: "int_from_float", msg: fraction, input: value });
      }
      if (typeof value !== "string") return fault(at, { type: "int_type", msg, input: value });
      const unable = `${msg}, unable to parse string as an integer`;
      return fault(at, { type: "int_parsing", msg: unable, input: value });
    },
    json: described({ ...INTEGER, ...bounds(options.range) }, options),
  };
}

export function number(options: NumberOptions = {}): Schema<number> {
  return {
    read: (value, at) => {
      const isNumeric = typeof value === "string" && isNumberText(value, NUMBER_TEXT);
      if (typeof value === "number" || typeof value === "boolean" || isNumeric) {
        return within(Number(value), value, at, options.range);
      }
      const isText = typeof value === "string";
      const unable = isText ? ", unable to parse string as a number" : "";
      const type = isText ? "float_parsing" : "float_type";
      return fault(at, { type, msg: `Input should be a valid number${unable}`, input: value });
    },
    json: described({ ...NUMBER, ...bounds(options.range) }, options),
  };
}

function isNumberText(text: string, form: RegExp): boolean {
  return text.length <= MAX_NUMBER_CHARS && form.test(text);
}

/** One of some words, as pydantic's Literal. */
export function literal<const T extends string>(choices: readonly T[]): Schema<T> {
  return choice("literal_error", choices);
}

/** One of some words, as an Enum of Python's. */
export function enumeration<const T extends string>(choices: readonly T[]): Schema<T> {
  return choice("enum", choices);
}

function choice<T extends string>(type: string, choices: readonly T[]): Schema<T> {
  const quoted = choices.map((word) => `'${word}'`);
  const last = quoted.at(-1) ?? "";
  const expected = quoted.length > 1 ? `${quoted.slice(0, -1).join(", ")} or ${last}` : last;
  return {
    read: (value, at) =>
      choices.find((word) => word === value) ??
      fault(at, { type, msg: `Input should be ${expected}`, input: value, ctx: { expected } }),
    json: oneOf(choices),
  };
}

export function list<T>(item: Schema<T>, options: Described = {}): Schema<readonly T[]> {
  return {
    isList: true,
    read: (value, at) => {
      if (!Array.isArray(value)) {
        return fault(at, { type: "list_type", msg: "Input should be a valid list", input: value });
      }
      const items = value.map((one: unknown, index) => ({ one, at: { ...at, place: [...at.place, index] } }));
      const sound = items.filter((each) => item.isKind?.(each.one, each.at) ?? true);
      return sound.flatMap((each) => item.read(each.one, each.at) ?? []);
    },
    json: described(listOf(item.json), options),
  };
}

/** Words to words; what wrong values hold is not repeated where there are too many: it is often secret. */
export function textMap(
  options: { readonly maxItems?: number } = {},
): Schema<Readonly<Record<string, string>>> {
  const { maxItems } = options;
  return {
    read: (value, at) => {
      if (!isRecord(value)) {
        return fault(at, { type: "dict_type", msg: "Input should be a valid dictionary", input: value });
      }
      const entries = Object.entries(value);
      if (maxItems !== undefined && entries.length > maxItems) {
        const ctx = { field_type: "Dictionary", max_length: maxItems, actual_length: entries.length };
        const msg = `Dictionary should have at most ${maxItems} items after validation, not ${entries.length}`;
        return fault(at, { type: "too_long", msg, input: null, ctx });
      }
      const texts: [string, string][] = [];
      for (const [key, one] of entries) {
        if (typeof one === "string") texts.push([key, one]);
        else fault({ ...at, place: [...at.place, key.slice(0, MAX_SHOWN_KEY)] }, wrongText(one));
      }
      return Object.fromEntries(texts);
    },
    json: { ...mapOf(STRING), ...(maxItems === undefined ? {} : { maxProperties: maxItems }) },
  };
}

/** An object that is taken as it is. */
export function anyObject(): Schema<Readonly<Record<string, unknown>>> {
  return {
    read: (value, at) => {
      if (isRecord(value)) return value;
      const msg = "Input should be a valid dictionary or object to extract fields from";
      return fault(at, { type: "model_attributes_type", msg, input: value });
    },
    json: { type: "object" },
  };
}

/** One whose kind hangs on the fields before it; undefined where those are at fault, and nothing can be said of this one. */
export function dependent<T>(
  choose: (siblings: Readonly<Record<string, unknown>>) => Schema<T> | undefined,
  json: JsonSchema,
): Schema<T> {
  return { read: (value, at) => choose(at.siblings ?? {})?.read(value, at), json };
}

/** One of several objects, distinguished by the word in one of their fields: pydantic's discriminated union. */
export function taggedUnion<T>(tag: string, kinds: Readonly<Record<string, Schema<T>>>): Schema<T> {
  const words = Object.keys(kinds);
  const expected = words.map((word) => `'${word}'`).join(", ");
  const discriminator = `'${tag}'`;
  return {
    read: (value, at) => {
      const word = isRecord(value) ? value[tag] : undefined;
      if (word === undefined) {
        const msg = `Unable to extract tag using discriminator ${discriminator}`;
        return fault(at, { type: "union_tag_not_found", msg, input: value, ctx: { discriminator } });
      }
      const kind = typeof word === "string" && Object.hasOwn(kinds, word) ? kinds[word] : undefined;
      if (kind !== undefined) return kind.read(value, { ...at, place: [...at.place, String(word)] });
      const shown = String(word).slice(0, MAX_SHOWN);
      const msg = `Input tag '${shown}' found using ${discriminator} does not match any of the expected tags: ${expected}`;
      const ctx = { discriminator, tag: shown, expected_tags: expected };
      return fault(at, { type: "union_tag_invalid", msg, input: value, ctx });
    },
    json: { oneOf: words.map((word) => kinds[word]?.json ?? {}), discriminator: { propertyName: tag } },
  };
}

/** A form's field that holds JSON of an object; a text of null counts as absent. */
export function jsonText<T>(content: Schema<T>): Schema<T> {
  return {
    read: (value, at) => {
      const given = text().read(value, at);
      if (given === undefined) return undefined;
      const input = given.slice(0, MAX_SHOWN);
      let parsed: unknown;
      try {
        parsed = JSON.parse(given);
      } catch {
        return fault(at, { type: "json_invalid", msg: "Value is not valid JSON", input });
      }
      if (parsed === null) return undefined;
      if (isRecord(parsed)) return content.read(parsed, at);
      return fault(at, { type: "dict_type", msg: "Input should be a valid dictionary", input });
    },
    json: { ...STRING, contentMediaType: "application/json", contentSchema: content.json },
  };
}

function isOfLength(value: string, at: Reading, { minLength = 0, maxLength }: TextOptions): boolean {
  const length = [...value].length;
  if (length < minLength) {
    const msg = `String should have at least ${minLength} character${minLength === 1 ? "" : "s"}`;
    fault(at, { type: "string_too_short", msg, input: value, ctx: { min_length: minLength } });
    return false;
  }
  if (maxLength === undefined || length <= maxLength) return true;
  const msg = `String should have at most ${maxLength} characters`;
  fault(at, { type: "string_too_long", msg, input: value, ctx: { max_length: maxLength } });
  return false;
}

/** pydantic's ge and le; `input` as it was sent. */
function within(value: number, input: unknown, at: Reading, range: Range | undefined): number | undefined {
  if (range !== undefined && value < range.min) {
    const msg = `Input should be greater than or equal to ${range.min}`;
    return fault(at, { type: "greater_than_equal", msg, input, ctx: { ge: range.min } });
  }
  if (range !== undefined && value > range.max) {
    const msg = `Input should be less than or equal to ${range.max}`;
    return fault(at, { type: "less_than_equal", msg, input, ctx: { le: range.max } });
  }
  return value;
}

function wrongText(value: unknown): Omit<ValidationEntry, "loc"> {
  const msg = "Input should be a valid string";
  if (typeof value !== "string") return { type: "string_type", msg, input: value };
  // Python's str can hold a lone surrogate, UTF-8 can't: pydantic refuses it with a type of its own.
  const input = value.replace(/\p{Cs}/gu, "\u{fffd}");
  return { type: "string_unicode", msg: `${msg}, unable to parse raw data as a unicode string`, input };
}

/** Without lone surrogates, that is. */
function isUnicode(value: string): boolean {
  return !/\p{Cs}/u.test(value);
}

function fault({ place, faults }: Reading, entry: Omit<ValidationEntry, "loc">): undefined {
  const { type, msg, input, ctx } = entry;
  faults.push(ctx === undefined ? { type, loc: place, msg, input } : { type, loc: place, msg, input, ctx });
  return undefined;
}

function bounds(range: Range | undefined): JsonSchema {
  return range === undefined ? {} : { minimum: range.min, maximum: range.max };
}

function described(json: JsonSchema, { later, examples }: Described): JsonSchema {
  return {
    ...json,
    ...(later === undefined ? {} : { ...later, "x-refused-with": 400 }),
    ...(examples === undefined ? {} : { examples }),
  };
}
