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
