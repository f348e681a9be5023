/** Text that no upstream may be sent: half a surrogate pair, or a control character that no keyboard types. */

export interface BadText {
  /** UTF-16 index of the first offending code unit. */
  readonly index: number;
  readonly reason: "lone_surrogate" | "control_character";
}

// With the u flag a surrogate pair is one character, so \p{Cs} finds halves only.
const BAD = /(?![\t\n\r])[\p{Cc}\p{Cs}]/u;

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

/** The first thing wrong with `text`, or null. Tab, line feed and carriage return are fine, other C0, DEL and C1 not. */
export function findBadText(text: string): BadText | null {
  const index = text.search(BAD);
  if (index < 0) return null;
  const isSurrogate = text.charCodeAt(index) >= 0xd800;
  return { index, reason: isSurrogate ? "lone_surrogate" : "control_character" };
}
