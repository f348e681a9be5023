/** Where a span of text has something that may be more than text. */
import { EMOJI_START } from "./emoji.ts";

/** Units behind the start of a match where the sign that makes it one stands: a space, a digit, a selector, a keycap. */
const MAX_BEFORE_SIGN = 3;

/** Finds marks (single ASCII characters) and, where asked for, emoji with the space before them. */
export class SpecialFinder {
  readonly #pattern: RegExp;

  constructor(marks: string, hasEmoji: boolean) {
    const anyMark = `[${marks.replace(/[[\]\\^-]/g, "\\$&")}]`;
    this.#pattern = new RegExp(hasEmoji ? `${anyMark}|${EMOJI_START}` : anyMark, "u");
  }

  /** The first place in `from`..`to` where one starts; `to` = none before. */
  next(text: string, from: number, to: number): number {
    // No further than is asked for: a text without any would be searched to its end from each place.
    const index = text.slice(from, to + MAX_BEFORE_SIGN).search(this.#pattern);
    return index < 0 ? to : Math.min(from + index, to);
  }
}
