/** Makes new inputs out of old ones; the same seed makes the same inputs. */
import { MAX_INPUT_BYTES } from "./target.ts";

/** Bytes and numbers at which parsers change their minds. */
const BYTES = [
  0, 1, 0x0a, 0x20, 0x22, 0x2f, 0x3a, 0x3c, 0x3e, 0x5c, 0x7b, 0x7d, 0x7f, 0x80, 0xc2, 0xed, 0xff,
];
const NUMBERS = [
  0,
  1,
  4,
  127,
  128,
  255,
  256,
  32_767,
  32_768,
  65_535,
  65_536,
  2 ** 31 - 1,
  2 ** 31,
  2 ** 32 - 1,
];
const VALUES: readonly unknown[] = [
  null,
  true,
  false,
  0,
  -1,
  0.5,
  1e308,
  2 ** 53,
  "",
  " ",
  "0",
  "\u0000",
  "\ud800",
  "💥",
  "__proto__",
  "constructor",
  [],
  {},
  [[]],
  "x".repeat(600),
];
const MAX_DEPTH = 400;
/** Most inputs are as short as this: they come as far, and there can be more of them. One in LONG_EVERY may be long. */
const SHORT_BYTES = 1024;
const LONG_EVERY = 50;

export class Mutator {
  #state: number;
  readonly #words: readonly string[];

  constructor(seed: number, words: readonly string[] = []) {
    this.#state = seed >>> 0;
    this.#words = words;
  }

  /** From 0 to `below` - 1 (mulberry32). */
  next(below: number): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296) * below);
  }

  pick<T>(from: readonly T[]): T | undefined {
    return from[this.next(from.length)];
  }

  /** `other`: an input of which parts may be taken. */
  mutate(input: Buffer, other: Buffer): Buffer {
    let changed = this.next(3) === 0 ? this.#mutateJson(input) : input;
    for (let changes = 1 + this.next(4); changes > 0; changes -= 1) changed = this.#change(changed, other);
    return changed.subarray(0, this.next(LONG_EVERY) === 0 ? MAX_INPUT_BYTES : SHORT_BYTES);
  }

  #change(input: Buffer, other: Buffer): Buffer {
    const at = this.next(input.length + 1);
    const length = 1 + this.next(Math.min(input.length - at + 1, this.next(4) === 0 ? 512 : 8));
    switch (this.next(12)) {
      case 0:
        return replaced(input, at, 1, Buffer.of((input[at] ?? 0) ^ (1 << this.next(8))));
      case 1:
        return replaced(input, at, 1, Buffer.of(this.next(256)));
      case 2:
        return replaced(input, at, this.next(2), Buffer.of(this.pick(BYTES) ?? 0));
      case 3:
        return replaced(input, at, length, Buffer.alloc(0));
      case 4:
        return replaced(input, at, 0, input.subarray(at, at + length));
      case 5: {
        const from = this.next(other.length + 1);
        return replaced(input, at, this.next(2) * length, other.subarray(from, from + 1 + this.next(64)));
      }
      case 6:
        return Buffer.concat([input.subarray(0, at), other.subarray(this.next(other.length + 1))]);
      case 7:
        return input.subarray(0, at);
      case 8:
        return this.#number(input, at);
      case 9:
        return this.#stretch(input, at, length);
      default:
        return replaced(input, at, this.next(2) * length, Buffer.from(this.pick(this.#words) ?? "\u00e4"));
    }
  }

  /** Writes a number as text, or as two or four bytes. */
  #number(input: Buffer, at: number): Buffer {
    const number = (this.pick(NUMBERS) ?? 0) + this.next(3) - 1;
    if (this.next(2) === 0) {
      const digits = /\d+/.exec(input.toString("latin1", at, at + 64));
      const start = at + (digits?.index ?? 0);
      return replaced(input, start, digits?.[0].length ?? 0, Buffer.from(String(number)));
    }
    const bytes = Buffer.alloc(4);
    if (this.next(2) === 0) bytes.writeUInt32BE(number >>> 0);
    else bytes.writeUInt32LE(number >>> 0);
    const part = this.next(2) === 0 ? bytes : bytes.subarray(0, 2);
    return replaced(input, at, part.length, part);
  }

  /** Repeats a piece, seldom up to the longest input: what takes time or memory by the square shows there. */
  #stretch(input: Buffer, at: number, length: number): Buffer {
    const piece = input.subarray(at, at + length);
    if (piece.length === 0) return input;
    const room = this.next(40) === 0 ? MAX_INPUT_BYTES : 16 * piece.length;
    const bytes = this.next(Math.max(1, Math.min(room, MAX_INPUT_BYTES - input.length)));
    return replaced(input, at, 0, Buffer.alloc(bytes, piece));
  }

  /** Changes one value of a line that is JSON. */
  #mutateJson(input: Buffer): Buffer {
    const lines = input.toString("utf8").split("\n");
    const index = this.next(lines.length);
    const line = lines[index] ?? "";
    if (!line.startsWith("{") && !line.startsWith("[")) return input;
    try {
      lines[index] = JSON.stringify(this.#mutateValue(JSON.parse(line), 0));
    } catch (thrown) {
      // No JSON any more, or nested too deeply for JSON.stringify.
      if (!(thrown instanceof SyntaxError) && !(thrown instanceof RangeError)) throw thrown;
    }
    return Buffer.from(lines.join("\n"));
  }

  #mutateValue(value: unknown, depth: number): unknown {
    const isLeaf = typeof value !== "object" || value === null;
    if (isLeaf || depth > MAX_DEPTH || this.next(6) === 0) return this.#newValue(value);
    if (Array.isArray(value)) {
      const index = this.next(value.length + 1);
      return [
        ...value.slice(0, index),
        this.#mutateValue(value[index], depth + 1),
        ...value.slice(index + 1),
      ];
    }
    const entries = Object.entries(value);
    const [name = this.pick(this.#words) ?? "name", inner] = this.pick(entries) ?? [];
    switch (this.next(8)) {
      case 0:
        return Object.fromEntries(entries.filter(([each]) => each !== name));
      case 1:
        return { ...value, [this.pick(this.#words) ?? "name"]: inner };
      default:
        return { ...value, [name]: this.#mutateValue(inner, depth + 1) };
    }
  }

  #newValue(old: unknown): unknown {
    switch (this.next(6)) {
      case 0:
        return typeof old === "string" ? old + (this.pick(this.#words) ?? "") : this.pick(VALUES);
      case 1:
        return this.pick(this.#words) ?? "";
      case 2:
        return this.pick(NUMBERS);
      case 3:
        return Array.from({ length: this.next(130) }, () => old);
      default:
        return this.pick(VALUES);
    }
  }
}

function replaced(input: Buffer, at: number, length: number, by: Uint8Array): Buffer {
  return Buffer.concat([input.subarray(0, at), by, input.subarray(at + length)]);
}
