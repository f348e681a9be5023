/** Code points and surrogate pairs. Texts come in whole code points: who takes them from outside joins halves of pairs. */

/** The code point that ends at `end`; 0 = none. */
export function codePointBefore(text: string, end: number): number {
  if (end === 0) return 0;
  const low = text.charCodeAt(end - 1);
  return low >= 0xdc00 && low <= 0xdfff && end > 1 ? (text.codePointAt(end - 2) ?? low) : low;
}

/** A text without the first half of a surrogate pair that it ends with, and that half; "" = it ends with none. */
export function divideHalf(text: string): { readonly whole: string; readonly half: string } {
  const unit = text.charCodeAt(text.length - 1);
  const end = unit >= 0xd800 && unit <= 0xdbff ? text.length - 1 : text.length;
  return { whole: text.slice(0, end), half: text.slice(end) };
}

/** Whether a text begins with the second half of a surrogate pair. */
export function beginsWithHalf(text: string): boolean {
  const unit = text.charCodeAt(0);
  return unit >= 0xdc00 && unit <= 0xdfff;
}

/**
 * UTF-16 offsets as code-point offsets. Only the places of surrogate pairs are kept, so text without emoji costs nothing,
 * and a look-up is a binary search over the pairs.
 */
export class CodePointOffsets {
  /** UTF-16 index of the second half of every pair, rising. */
  readonly #pairs: readonly number[];

  constructor(text: string) {
    this.#pairs = Array.from(text.matchAll(/[\u{10000}-\u{10ffff}]/gu), ({ index }) => index + 1);
  }

  /** Code points before a UTF-16 offset. An offset inside a pair counts as the pair's start. */
  codePointsOf(utf16Offset: number): number {
    let low = 0;
    let high = this.#pairs.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#pairs[middle] ?? 0) <= utf16Offset) low = middle + 1;
      else high = middle;
    }
    return utf16Offset - low;
  }
}
