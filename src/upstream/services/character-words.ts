/** Words out of times of characters, wherever a service cuts its lists of them. */
import { listOf, numberOf, textOf } from "./json-values.ts";
import { type ServiceWord, UNSPACED } from "./word-matcher.ts";

/** Longer than any word: what has no spaces is cut. */
const MAX_CHARACTERS = 64;

export class CharacterWords {
  #text = "";
  #count = 0;
  #startSeconds = Number.NaN;
  #endSeconds = Number.NaN;

  /** Lists of one length; seconds. Where one is short or holds something else a character has no time. */
  push(characters: unknown, starts: unknown, ends: unknown): ServiceWord[] {
    const [startList, endList] = [listOf(starts), listOf(ends)];
    return listOf(characters).flatMap((value, index) => {
      const character = textOf(value);
      if (/^\s*$/.test(character)) return this.finish();
      const before = UNSPACED.test(character) || this.#count >= MAX_CHARACTERS ? this.finish() : [];
      if (this.#count === 0) this.#startSeconds = numberOf(startList[index]);
      this.#text += character;
      this.#count += 1;
      this.#endSeconds = numberOf(endList[index]);
      return UNSPACED.test(character) ? [...before, ...this.finish()] : before;
    });
  }

  /** No more of this word comes. */
  finish(): ServiceWord[] {
    if (this.#count === 0) return [];
    const word = { text: this.#text, startSeconds: this.#startSeconds, endSeconds: this.#endSeconds };
    this.#text = "";
    this.#count = 0;
    return [word];
  }
}
