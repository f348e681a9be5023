/**
 * Reads the fields of a body or a query the way pydantic v2 does in its lax mode, gathering every fault in its words.
 * Unknown fields are ignored; null stands for an absent optional field.
 */
import type { ValidationEntry } from "./refusal.ts";

type Place = readonly (string | number)[];

const TRUE_WORDS: ReadonlySet<unknown> = new Set([true, 1, "true", "1", "t", "y", "yes", "on"]);
const FALSE_WORDS: ReadonlySet<unknown> = new Set([false, 0, "false", "0", "f", "n", "no", "off"]);
const INTEGER = /^\s*[-+]?\d+(?:\.0+)?\s*$/;
const NUMBER = /^\s*[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?\s*$/;

/** One object's fields. */
export class Fields {
  readonly #source: Readonly<Record<string, unknown>>;
  readonly #place: Place;
  readonly #faults: ValidationEntry[];
  /** What pydantic shows as the input of a missing field: the object, or null for the fields of a body. */
  readonly #missingInput: unknown;

  constructor(
    source: Readonly<Record<string, unknown>>,
    options: { readonly place: Place; readonly faults: ValidationEntry[]; readonly missingInput?: unknown },
  ) {
    this.#source = source;
    this.#place = options.place;
    this.#faults = options.faults;
    this.#missingInput = options.missingInput ?? null;
  }

  requiredText(name: string): string {
    const value = this.#value(name);
    if (value === undefined) {
      // A field of the body that is null counts as missing; inside an object null is a value of the wrong type.
      if (this.#missingInput !== null && this.#source[name] === null) this.#wrongText(name, null);
      else this.missing(name);
      return "";
    }
    return this.#text(name, value) ?? "";
  }

  text(name: string): string | undefined {
    const value = this.#value(name);
    return value === undefined ? undefined : this.#text(name, value);
  }

  boolean(name: string): boolean | undefined {
    const value = this.#value(name);
    if (value === undefined) return undefined;
    const key = typeof value === "string" ? value.toLowerCase() : value;
    if (TRUE_WORDS.has(key)) return true;
    if (FALSE_WORDS.has(key)) return false;
    const isWord = typeof value === "string" || typeof value === "number";
    const unable = isWord ? ", unable to interpret input" : "";
    this.#fault(name, {
      type: isWord ? "bool_parsing" : "bool_type",
      msg: `Input should be a valid boolean${unable}`,
      input: value,
    });
    return undefined;
  }

  /** `range` as pydantic's ge and le. */
  integer(name: string, range?: { readonly min: number; readonly max: number }): number | undefined {
    const value = this.#value(name);
    if (value === undefined) return undefined;
    if (typeof value === "boolean") return this.#within(name, value, range);
    if (typeof value === "number" && Number.isInteger(value)) return this.#within(name, value, range);
    if (typeof value === "string" && INTEGER.test(value)) return this.#within(name, value, range);
    const msg = "Input should be a valid integer";
    if (typeof value === "number") {
      this.#fault(name, {
        type: "int_from_float",
        msg: `${msg}, got a number with a fractional part`,
        input: value,
      });
    } else if (typeof value === "string") {
      this.#fault(name, {
        type: "int_parsing",
        msg: `${msg}, unable to parse string as an integer`,
        input: value,
      });
    } else this.#fault(name, { type: "int_type", msg, input: value });
    return undefined;
  }

  /** `range` as pydantic's ge and le. */
  number(name: string, range?: { readonly min: number; readonly max: number }): number | undefined {
    const value = this.#value(name);
    if (value === undefined) return undefined;
    const isNumeric = typeof value === "string" && NUMBER.test(value);
    if (typeof value !== "number" && typeof value !== "boolean" && !isNumeric) {
      const isText = typeof value === "string";
      const unable = isText ? ", unable to parse string as a number" : "";
      const type = isText ? "float_parsing" : "float_type";
      this.#fault(name, { type, msg: `Input should be a valid number${unable}`, input: value });
      return undefined;
    }
    return this.#within(name, value, range);
  }

  choice<T extends string>(name: string, choices: readonly T[]): T | undefined {
    const value = this.#value(name);
    if (value === undefined) return undefined;
    const found = choices.find((choice) => choice === value);
    if (found !== undefined) return found;
    const quoted = choices.map((choice) => `'${choice}'`);
    const expected = `${quoted.slice(0, -1).join(", ")} or ${quoted.at(-1) ?? ""}`;
    this.#fault(name, {
      type: "literal_error",
      msg: `Input should be ${expected}`,
      input: value,
      ctx: { expected },
    });
    return undefined;
  }

  object(name: string): Fields | undefined {
    const value = this.#value(name);
    return value === undefined ? undefined : this.#fieldsAt([name], value);
  }

  requiredTextList(name: string): readonly string[] {
    if (this.#value(name) === undefined) {
      this.missing(name);
      return [];
    }
    return this.textList(name) ?? [];
  }

  textList(name: string): readonly string[] | undefined {
    return this.#items(name)?.flatMap((item, index) => {
      if (typeof item === "string" && isUnicode(item)) return [item];
      this.#wrongText(name, item, index);
      return [];
    });
  }

  objectList(name: string, options: { readonly isRequired: boolean }): readonly Fields[] | undefined {
    if (options.isRequired && this.#value(name) === undefined) {
      this.missing(name);
      return undefined;
    }
    return this.#items(name)?.flatMap((item, index) => this.#fieldsAt([name, index], item) ?? []);
  }

  get #isQuery(): boolean {
    return this.#place[0] === "query";
  }

  missing(name: string): void {
    this.#fault(name, { type: "missing", msg: "Field required", input: this.#missingInput });
  }

  /** Undefined where absent or null; the last one where a query repeats it. */
  #value(name: string): unknown {
    const value = Object.hasOwn(this.#source, name) ? this.#source[name] : undefined;
    return (this.#isQuery && Array.isArray(value) ? value.at(-1) : value) ?? undefined;
  }

  #items(name: string): readonly unknown[] | undefined {
    if (this.#value(name) === undefined) return undefined;
    const value = this.#source[name];
    if (Array.isArray(value)) return value;
    if (this.#isQuery) return [value];
    this.#fault(name, { type: "list_type", msg: "Input should be a valid list", input: value });
    return undefined;
  }

  #fieldsAt(path: Place, value: unknown): Fields | undefined {
    const place = [...this.#place, ...path];
    if (isRecord(value)) return new Fields(value, { place, faults: this.#faults, missingInput: value });
    this.#faults.push({
      type: "model_attributes_type",
      loc: place,
      msg: "Input should be a valid dictionary or object to extract fields from",
      input: value,
    });
    return undefined;
  }

  #text(name: string, value: unknown): string | undefined {
    if (typeof value === "string" && isUnicode(value)) return value;
    this.#wrongText(name, value);
    return undefined;
  }

  #wrongText(name: string, value: unknown, ...index: number[]): void {
    // Python's str can hold a lone surrogate, UTF-8 can't: pydantic refuses it with a type of its own.
    const isSurrogate = typeof value === "string";
    this.#faults.push({
      type: isSurrogate ? "string_unicode" : "string_type",
      loc: [...this.#place, name, ...index],
      msg: isSurrogate
        ? "Input should be a valid string, unable to parse raw data as a unicode string"
        : "Input should be a valid string",
      input: isSurrogate ? value.replace(/\p{Cs}/gu, "\u{fffd}") : value,
    });
  }

  #within(
    name: string,
    value: string | number | boolean,
    range: { readonly min: number; readonly max: number } | undefined,
  ): number | undefined {
    const number = Number(value);
    if (range !== undefined && number < range.min) {
      this.#bound(name, value, { type: "greater_than_equal", words: "greater", ctx: { ge: range.min } });
    } else if (range !== undefined && number > range.max) {
      this.#bound(name, value, { type: "less_than_equal", words: "less", ctx: { le: range.max } });
    } else return number;
    return undefined;
  }

  #bound(
    name: string,
    input: unknown,
    bound: { readonly type: string; readonly words: string; readonly ctx: Readonly<Record<string, number>> },
  ): void {
    const limit = Object.values(bound.ctx)[0] ?? 0;
    const msg = `Input should be ${bound.words} than or equal to ${limit}`;
    this.#fault(name, { type: bound.type, msg, input, ctx: bound.ctx });
  }

  #fault(name: string, entry: Omit<ValidationEntry, "loc">): void {
    const { type, msg, input, ctx } = entry;
    const loc = [...this.#place, name];
    this.#faults.push(ctx === undefined ? { type, loc, msg, input } : { type, loc, msg, input, ctx });
  }
}

/** Without lone surrogates, that is. */
function isUnicode(text: string): boolean {
  return !/\p{Cs}/u.test(text);
}

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
