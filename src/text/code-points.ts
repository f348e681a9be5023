/** Code points at the end of a text. Texts come in whole code points: who takes them from outside joins halves of pairs. */

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
