/**
 * Where and why a text is not JSON, in the words and positions of Python's json module: the interface's 422 for a
 * malformed body quotes them. Runs on bodies that JSON.parse has already refused.
 */

export interface JsonFault {
  readonly message: string;
  /** Code points before the fault. */
  readonly position: number;
}

const SPACE = /[ \t\n\r]*/y;
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?/y;
const WORD = /true|false|null|NaN|-?Infinity/y;
const PLAIN = /[^"\\\p{Cc}]*/uy;
/** Python stops at its recursion limit as well. */
const MAX_DEPTH = 500;

/** The first fault of `text`. */
export function findJsonFault(text: string): JsonFault {
  const scanner = new Scanner(text);
  const fault = scanner.value(0) ?? scanner.rest();
  const { message, at } = fault ?? { message: "Expecting value", at: 0 };
  return { message, position: Array.from(text.slice(0, at)).length };
}

interface Fault {
  readonly message: string;
  readonly at: number;
}

class Scanner {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  /** Reads one value; the fault, or undefined where it is sound. */
  value(depth: number): Fault | undefined {
    this.#skip(SPACE);
    const char = this.#text[this.#at];
    if (depth > MAX_DEPTH) return this.#fault("Expecting value");
    if (char === '"') return this.#string();
    if (char === "{") return this.#members(depth, "}", true);
    if (char === "[") return this.#members(depth, "]", false);
    return this.#skip(NUMBER) || this.#skip(WORD) ? undefined : this.#fault("Expecting value");
  }

  rest(): Fault | undefined {
    this.#skip(SPACE);
    return this.#at < this.#text.length ? this.#fault("Extra data") : undefined;
  }

  #members(depth: number, close: string, isObject: boolean): Fault | undefined {
    this.#at++;
    this.#skip(SPACE);
    if (this.#text[this.#at] === close) {
      this.#at++;
      return undefined;
    }
    for (;;) {
      const fault = (isObject ? this.#key() : undefined) ?? this.value(depth + 1);
      if (fault !== undefined) return fault;
      this.#skip(SPACE);
      const next = this.#text[this.#at];
      if (next !== close && next !== ",") return this.#fault("Expecting ',' delimiter");
      this.#at++;
      if (next === close) return undefined;
      this.#skip(SPACE);
    }
  }

  #key(): Fault | undefined {
    this.#skip(SPACE);
    if (this.#text[this.#at] !== '"') return this.#fault("Expecting property name enclosed in double quotes");
    const fault = this.#string();
    if (fault !== undefined) return fault;
    this.#skip(SPACE);
    if (this.#text[this.#at] !== ":") return this.#fault("Expecting ':' delimiter");
    this.#at++;
    return undefined;
  }

  #string(): Fault | undefined {
    const begin = this.#at++;
    for (;;) {
      this.#skip(PLAIN);
      const char = this.#text[this.#at];
      if (char === undefined) return { message: "Unterminated string starting at", at: begin };
      if (char === '"') {
        this.#at++;
        return undefined;
      }
      // DEL and C1 controls are allowed in JSON; C0 are not.
      if (char !== "\\") {
        if (char < " ") return this.#fault("Invalid control character at");
        this.#at++;
        continue;
      }
      const escaped = this.#text[this.#at + 1];
      if (escaped === undefined) return { message: "Unterminated string starting at", at: begin };
      if (escaped === "u" && !/^[0-9a-fA-F]{4}$/.test(this.#text.slice(this.#at + 2, this.#at + 6))) {
        // To the letter what Python says, its four X for hexadecimal digits among it.
        return { message: "Invalid \\uXXXX escape", at: this.#at + 1 };
      }
      if (!'"\\/bfnrtu'.includes(escaped)) return this.#fault("Invalid \\escape");
      this.#at += escaped === "u" ? 6 : 2;
    }
  }

  /** Advances over what `pattern` matches here; whether that was anything. */
  #skip(pattern: RegExp): boolean {
    pattern.lastIndex = this.#at;
    const length = pattern.exec(this.#text)?.[0].length ?? 0;
    this.#at += length;
    return length > 0;
  }

  #fault(message: string): Fault {
    return { message, at: this.#at };
  }
}
