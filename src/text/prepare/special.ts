/** Where a span of text has something that may be more than text. */
import { EMOJI_START } from "./emoji.ts";

/** Units behind the start of a match where the sign that makes it one stands: a space, a digit, a selector, a keycap. */
const MAX_BEFORE_SIGN = 3;

/** Finds marks (single ASCII characters) and, where asked for, emoji with the space before them. */
export class SpecialFinder {
  /** 1 = a mark, by ASCII code. */
  readonly #marks = new Uint8Array(128);
  /** Marks and emoji; null = emoji are text. */
  readonly #pattern: RegExp | null;

  constructor(marks: string, hasEmoji: boolean) {
    for (const mark of marks) this.#marks[mark.charCodeAt(0)] = 1;
    const anyMark = `[${marks.replace(/[[\]\\^-]/g, "\\$&")}]`;
    this.#pattern = hasEmoji ? new RegExp(`${anyMark}|${EMOJI_START}`, "gu") : null;
  }

  /** The first place in `from`..`to` where one starts; `to` = none before. */
  next(text: string, from: number, to: number): number {
    const pattern = this.#pattern;
    let at = from;
    for (; at < to; at += 1) {
      const unit = text.charCodeAt(at);
      if (unit < 128) {
        if (this.#marks[unit] === 1) break;
      } else if (pattern !== null && mayBePicture(unit)) return nextMatch(pattern, text, from, to);
    }
    const mayBeEmoji = pattern !== null && hasPictureSign(text, at, at + MAX_BEFORE_SIGN);
    return mayBeEmoji ? nextMatch(pattern, text, from, to) : at;
  }
}

/** Properties are slow to look up: the pattern is asked only where a character may be a picture. */
function nextMatch(pattern: RegExp, text: string, from: number, to: number): number {
  pattern.lastIndex = from;
  return Math.min(pattern.exec(text)?.index ?? to, to);
}

function hasPictureSign(text: string, from: number, to: number): boolean {
  const end = Math.min(to, text.length);
  for (let at = from; at < end; at += 1) if (mayBePicture(text.charCodeAt(at))) return true;
  return false;
}

/**
 * False for a UTF-16 unit that is neither Extended_Pictographic (Unicode keeps no place for more of them below U+10000),
 * nor the keycap mark, nor half of a pair.
 */
export function mayBePicture(unit: number): boolean {
  if (unit < 0x203c) return unit === 0xa9 || unit === 0xae;
  if (unit < 0x2c00) return true;
  if (unit < 0xd800) return unit === 0x3030 || unit === 0x303d || unit === 0x3297 || unit === 0x3299;
  return unit <= 0xdfff;
}
