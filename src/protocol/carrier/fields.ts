/**
 * Reads the JSON of carriers: a field that is needed and missing, or of a wrong type, is a `carrier_protocol` error with
 * the field's path and never its value. Small readers instead of schemas, because media comes fifty times a second and
 * call.
 */
import { GatewayError } from "../../errors.ts";
import type { CarrierName } from "./carrier.ts";

/** The longest message that is read: characters of text or bytes. */
export const MAX_MESSAGE_LENGTH = 1_048_576;
/** Ids of calls and streams, numbers of callers, names of marks. */
const MAX_ID_CHARS = 512;
/** What an application may hand over with a call: more is left out. */
const MAX_PARAMETERS = 64;
const MAX_PARAMETER_CHARS = 4096;

/** The call can't go on; `what` holds none of the caller's words, digits or numbers. */
export function protocolError(carrier: CarrierName, what: string): GatewayError {
  return new GatewayError("carrier_protocol", `Cannot read ${carrier}: ${what}`);
}

/** Throws `carrier_protocol` for a message that is longer than any carrier's. */
export function checkLength(carrier: CarrierName, message: string | Uint8Array): void {
  if (message.length <= MAX_MESSAGE_LENGTH) return;
  throw protocolError(carrier, `a message of ${message.length}, at most ${MAX_MESSAGE_LENGTH} are taken`);
}

/** One JSON object; throws `carrier_protocol` for anything else. */
export function readFields(carrier: CarrierName, text: string): Fields {
  checkLength(carrier, text);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    // The parser's own message quotes the text: it stays in `cause`, which nobody is sent.
    throw new GatewayError("carrier_protocol", `Cannot read ${carrier}: a message is not JSON`, {
      cause: error,
    });
  }
  if (!isObject(value)) throw protocolError(carrier, "a message is not a JSON object");
  return new Fields(carrier, value);
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** One object of a message. `null` counts as missing. */
export class Fields {
  readonly #carrier: CarrierName;
  readonly #values: Readonly<Record<string, unknown>>;
  readonly #path: string;

  constructor(carrier: CarrierName, values: Readonly<Record<string, unknown>>, path = "") {
    this.#carrier = carrier;
    this.#values = values;
    this.#path = path;
  }

  has(name: string): boolean {
    return Object.hasOwn(this.#values, name) && this.#values[name] !== null;
  }

  /** A string of any length. */
  text(name: string): string {
    return this.optionalText(name) ?? this.#fail(name, "is missing");
  }

  optionalText(name: string): string | undefined {
    if (!this.has(name)) return undefined;
    const value = this.#values[name];
    return typeof value === "string" ? value : this.#fail(name, "is not a string");
  }

  /** A string of 1 to 512 characters. */
  id(name: string): string {
    return this.optionalId(name) ?? this.#fail(name, "is missing");
  }

  /** As `id`; an empty string counts as missing. */
  optionalId(name: string): string | undefined {
    const text = this.optionalText(name);
    if (text === undefined || text === "") return undefined;
    return text.length <= MAX_ID_CHARS ? text : this.#fail(name, `has more than ${MAX_ID_CHARS} characters`);
  }

  /** A whole number from 0 up, as a number or in digits: carriers write both. */
  optionalCount(name: string): number | undefined {
    if (!this.has(name)) return undefined;
    const value = this.#values[name];
    const count = typeof value === "string" && /^\d{1,15}$/.test(value) ? Number(value) : value;
    return typeof count === "number" && Number.isSafeInteger(count) && count >= 0
      ? count
      : this.#fail(name, "is not a whole number");
  }

  count(name: string): number {
    return this.optionalCount(name) ?? this.#fail(name, "is missing");
  }

  object(name: string): Fields {
    return this.optionalObject(name) ?? this.#fail(name, "is missing");
  }

  optionalObject(name: string): Fields | undefined {
    if (!this.has(name)) return undefined;
    const value = this.#values[name];
    if (!isObject(value)) return this.#fail(name, "is not an object");
    return new Fields(this.#carrier, value, `${this.#path}${name}.`);
  }

  /**
   * The fields that an application has put here: strings as they are, numbers and booleans in words. Others, those in
   * `except` and what is over the bounds (64 of 4096 characters) are left out.
   */
  parameters(except: readonly string[] = []): Readonly<Record<string, string>> {
    const scalars = Object.entries(this.#values).flatMap(([name, value]) =>
      ["string", "number", "boolean"].includes(typeof value) && !except.includes(name)
        ? [[name, String(value)] as const]
        : [],
    );
    return toParameters(scalars);
  }

  #fail(name: string, what: string): never {
    throw protocolError(this.#carrier, `${this.#path}${name} ${what}`);
  }
}

/** Parameters from pairs, within the bounds of `Fields.parameters`. A name such as `__proto__` is only a name. */
export function toParameters(
  pairs: readonly (readonly [name: string, value: string])[],
): Readonly<Record<string, string>> {
  return Object.fromEntries(
    pairs
      .filter(([name, value]) => name.length + value.length <= MAX_PARAMETER_CHARS)
      .slice(0, MAX_PARAMETERS),
  );
}
