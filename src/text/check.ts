/** Text that no upstream may be sent: half a surrogate pair, or a control character that no keyboard types. */

interface BadText {
  /** UTF-16 index of the first offending code unit. */
  readonly index: number;
  readonly reason: "lone_surrogate" | "control_character";
}

// With the u flag a surrogate pair is one character, so \p{Cs} finds halves only.
const BAD = /(?![\t\n\r])[\p{Cc}\p{Cs}]/u;

/** The first thing wrong with `text`, or null. Tab, line feed and carriage return are fine, other C0, DEL and C1 not. */
export function findBadText(text: string): BadText | null {
  const index = text.search(BAD);
  if (index < 0) return null;
  const isSurrogate = text.charCodeAt(index) >= 0xd800;
  return { index, reason: isSurrogate ? "lone_surrogate" : "control_character" };
}
