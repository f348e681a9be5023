/** Reads a text that comes in any pieces as code points: surrogate pairs are joined, whatever the split. */
import { unitsOf } from "./characters.ts";

export class CodePointReader {
  readonly #take: (codePoint: number, index: number) => void;
  #offset: number;
  #highHalf = 0;

  /** `take` gets each code point with its UTF-16 offset; a lone half of a pair passes as it is. `from`: first offset. */
  constructor(take: (codePoint: number, index: number) => void, from = 0) {
    this.#take = take;
    this.#offset = from;
  }

  /** UTF-16 offset behind the last code point taken; half a pair may wait behind it. */
  get offset(): number {
    return this.#offset;
  }

  /** Whether no half of a pair waits for the other. */
  get isWhole(): boolean {
    return this.#highHalf === 0;
  }

  push(text: string): void {
    for (let i = 0; i < text.length; i++) this.step(text.charCodeAt(i));
  }

  /** Whether `step` would only hand this unit on: the owner may take it itself, and `advance`. */
  passes(unit: number): boolean {
    return this.#highHalf === 0 && (unit < 0xd800 || unit > 0xdbff);
  }

  /** The owner took `units` UTF-16 units itself, none of them half of a pair, while the reader `isWhole`. */
  advance(units: number): void {
    this.#offset += units;
  }

  /** Nothing follows: a waiting half is taken. */
  end(): void {
    const high = this.#highHalf;
    this.#highHalf = 0;
    if (high !== 0) this.#pass(high);
  }

  /** One UTF-16 unit. */
  step(unit: number): void {
    const high = this.#highHalf;
    if (high !== 0) {
      this.#highHalf = 0;
      if (unit >= 0xdc00 && unit <= 0xdfff) {
        this.#pass((high - 0xd800) * 0x400 + (unit - 0xdc00) + 0x10000);
        return;
      }
      this.#pass(high);
    }
    if (unit >= 0xd800 && unit <= 0xdbff) this.#highHalf = unit;
    else this.#pass(unit);
  }

  #pass(codePoint: number): void {
    const index = this.#offset;
    this.#offset += unitsOf(codePoint);
    this.#take(codePoint, index);
  }
}
