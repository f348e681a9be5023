/**
 * Where in a text speech may begin again: not inside a word, a tag (`<break time="1s"/>`, `[laughs]`), or an element that
 * means nothing when it is cut (`<sub alias="...">WHO</sub>`).
 */

import { AtomicSpans } from "./atomic-spans.ts";
import { MAX_TAG, tagLength } from "./markup.ts";
import type { WordSpan } from "./unspaced.ts";
import { type ScannedWord, WordScanner } from "./words.ts";

/** An element that is longer is text like any other, UTF-16 units. */
const MAX_ELEMENT_CHARS = 800;
const MARKUP_START = /[<[]/;

export interface WordPositionsOptions {
  /** UTF-16 offsets, rising, that no word reaches across: where inputs of a dialogue meet. */
  readonly joints?: readonly number[];
  /** Whether `[laughs]` is no word, as for a model that acts on it. */
  readonly hasDirections?: boolean;
}

/** Offsets are UTF-16, into the text given. */
export class WordPositions {
  /** Rising. */
  readonly words: readonly WordSpan[];
  readonly #atomic = new AtomicSpans(MAX_ELEMENT_CHARS);

  constructor(text: string, { joints = [], hasDirections = false }: WordPositionsOptions = {}) {
    this.words = wordsOf(text, { joints, hasDirections });
    if (MARKUP_START.test(text)) this.#findAtomic(text, hasDirections);
  }

  /** The last place up to `at` where no word is divided. */
  before(at: number): number {
    const word = this.words[this.#firstBehind(at)];
    return this.#atomic.placeBefore(word === undefined ? at : Math.min(at, word.start));
  }

  /** Index of the first word that ends behind `at`. */
  #firstBehind(at: number): number {
    let [low, high] = [0, this.words.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.words[middle]?.end ?? 0) <= at) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #findAtomic(text: string, hasBracketTags: boolean): void {
    const atomic = this.#atomic;
    const opening = hasBracketTags ? /[<[]/g : /</g;
    for (let found = opening.exec(text); found !== null; found = opening.exec(text)) {
      const start = found.index;
      const tag = text.slice(start, start + Math.max(tagLength(text.slice(start, start + MAX_TAG)), 0));
      if (tag === "") continue;
      opening.lastIndex = start + tag.length;
      atomic.tag(tag, start, opening.lastIndex);
    }
    // What is not closed is text like any other.
    atomic.advance(text.length + MAX_ELEMENT_CHARS + 1);
  }
}

/** The words of a text, rising. */
export function wordsOf(
  text: string,
  { joints = [], hasDirections = false }: WordPositionsOptions = {},
): ScannedWord[] {
  const scanner = new WordScanner(hasDirections);
  const words: ScannedWord[] = [];
  let from = 0;
  for (const joint of [...joints, text.length]) {
    if (joint < from || joint > text.length) continue;
    words.push(...scanner.push(text.slice(from, joint)), ...scanner.endWord());
    from = joint;
  }
  return words;
}
