/**
 * UTF-16 offsets as code-point offsets and back, for a text that grows. Only the places of surrogate pairs are kept,
 * so text without emoji costs nothing, and a look-up is a binary search over the pairs.
 */

export class CodePointOffsets {
  /** UTF-16 index of the second half of every pair, rising. */
  readonly #pairs: number[] = [];
  #length = 0;
  #endsInHighHalf = false;

  constructor(text = "") {
    this.append(text);
  }

  /** UTF-16 length of the text so far. */
  get length(): number {
    return this.#length;
  }

  append(text: string): void {
    for (let i = 0; i < text.length; i++) {
      const unit = text.charCodeAt(i);
      if (this.#endsInHighHalf && isLowHalf(unit)) {
        this.#pairs.push(this.#length + i);
        this.#endsInHighHalf = false;
      } else {
        this.#endsInHighHalf = isHighHalf(unit);
      }
    }
    this.#length += text.length;
  }

  /** Code points before a UTF-16 offset. An offset inside a pair counts as the pair's start. */
  codePointsOf(utf16Offset: number): number {
    return utf16Offset - countBelow(this.#pairs.length, (i) => (this.#pairs[i] ?? 0) <= utf16Offset);
  }

  /** The UTF-16 offset where a code point starts. */
  utf16Of(codePointOffset: number): number {
    // Pair i is code point #pairs[i] - 1 - i; everything behind it is shifted by one more.
    return (
      codePointOffset + countBelow(this.#pairs.length, (i) => (this.#pairs[i] ?? 0) - 1 - i < codePointOffset)
    );
  }
}

/** How many of `count` sorted places satisfy `isBelow`, which is true up to some place and false from there on. */
function countBelow(count: number, isBelow: (index: number) => boolean): number {
  let low = 0;
  let high = count;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (isBelow(middle)) low = middle + 1;
    else high = middle;
  }
  return low;
}

function isHighHalf(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}

function isLowHalf(unit: number): boolean {
  return unit >= 0xdc00 && unit <= 0xdfff;
}
