/**
 * Makes timed words of timed characters. A word comes out once, when its last character has its time and is known to
 * be its last; so no word is ever cut in two, however text and times are split.
 */
import type { Timing } from "../protocol/vocabulary.ts";
import { type TimedCharacters, type TimedWord, weaker } from "./timed.ts";

/** Finds the words of a text that grows; `text/words.ts` has the real one (`new WordScanner()`). */
export interface WordSource {
  /** The words that this text completes, with UTF-16 offsets into all text pushed. */
  push(text: string): readonly FoundWord[];
  /** What follows is no part of the word before. */
  endWord(): readonly FoundWord[];
}

export interface FoundWord {
  readonly text: string;
  readonly start: number;
  readonly end: number;
}

export interface WordTrackerOptions {
  readonly words: WordSource;
  /** Text to begin with, as if appended. */
  readonly text?: string;
  /** UTF-16 offsets, rising, that no word reaches across: where inputs of a dialogue meet. */
  readonly boundaries?: readonly number[];
}

interface TimedCharacter {
  readonly start: number;
  readonly end: number;
  readonly startSeconds: number;
  readonly endSeconds: number;
  readonly timing: Timing;
}

/** Times are on one clock for all characters pushed: the caller shifts those of a later response. */
export class WordTracker {
  readonly #source: WordSource;
  readonly #boundaries: readonly number[];
  #nextBoundary = 0;
  #textLength = 0;
  /** Complete words, in order; those before `#nextWord` came out. */
  #words: FoundWord[] = [];
  #nextWord = 0;
  /** Characters that a coming word may need, in order. */
  #characters: TimedCharacter[] = [];
  #timedTo = 0;
  #lastStart = 0;

  constructor({ words, text = "", boundaries = [] }: WordTrackerOptions) {
    this.#source = words;
    this.#boundaries = boundaries;
    this.append(text);
  }

  /** More of the client's text. Words that it completes come out of the next `push` or `take`. */
  append(text: string): void {
    let from = 0;
    for (;;) {
      const boundary = this.#boundaries[this.#nextBoundary];
      const to = boundary === undefined ? text.length : boundary - this.#textLength;
      if (boundary === undefined || to > text.length) break;
      this.#keep(this.#source.push(text.slice(from, Math.max(to, from))));
      this.#keep(this.#source.endWord());
      from = Math.max(to, from);
      this.#nextBoundary += 1;
    }
    this.#keep(this.#source.push(text.slice(from)));
    this.#textLength += text.length;
  }

  /** No more text follows: the last word is complete. */
  endText(): void {
    this.#keep(this.#source.endWord());
  }

  /** Takes characters in the order of the text, and gives the words that are complete now. */
  push(timed: TimedCharacters): TimedWord[] {
    let start = timed.start;
    for (const [i, character] of timed.characters.entries()) {
      const end = start + character.length;
      const startSeconds = timed.startSeconds[i] ?? 0;
      const endSeconds = timed.endSeconds[i] ?? startSeconds;
      // A character that was timed before keeps its first time.
      if (start >= this.#timedTo) {
        this.#characters.push({ start, end, startSeconds, endSeconds, timing: timed.timing });
        this.#timedTo = end;
      }
      start = end;
    }
    return this.take();
  }

  /** The words that are complete now and did not come out yet. */
  take(): TimedWord[] {
    let end = this.#nextWord;
    while ((this.#words[end]?.end ?? Number.POSITIVE_INFINITY) <= this.#timedTo) end += 1;
    return this.#takeUpTo(end);
  }

  /** Nothing follows: the rest. Words of which no character was timed were not spoken and don't come out. */
  finish(): TimedWord[] {
    this.endText();
    return this.#takeUpTo(this.#words.length);
  }

  #keep(words: readonly FoundWord[]): void {
    for (const word of words) this.#words.push(word);
  }

  #takeUpTo(end: number): TimedWord[] {
    if (end === this.#nextWord) return [];
    const words = this.#words.slice(this.#nextWord, end);
    this.#nextWord = end;
    // A long text is there long before its times: words that came out are dropped many at a time.
    if (this.#nextWord > this.#words.length / 2) {
      this.#words = this.#words.slice(this.#nextWord);
      this.#nextWord = 0;
    }
    return this.#timeWords(words);
  }

  #timeWords(words: readonly FoundWord[]): TimedWord[] {
    const timed: TimedWord[] = [];
    let next = 0;
    for (const word of words) {
      while ((this.#characters[next]?.end ?? Number.POSITIVE_INFINITY) <= word.start) next += 1;
      const first = next;
      while ((this.#characters[next]?.start ?? Number.POSITIVE_INFINITY) < word.end) next += 1;
      const its = this.#characters.slice(first, next);
      if (its.length > 0) timed.push(this.#timeWord(word, its));
      // A character may reach into the next word, where the upstream timed several as one.
      if ((this.#characters[next - 1]?.end ?? 0) > word.end) next -= 1;
    }
    this.#characters = this.#characters.slice(next);
    return timed;
  }

  #timeWord(word: FoundWord, its: readonly TimedCharacter[]): TimedWord {
    const startSeconds = Math.max(its[0]?.startSeconds ?? 0, this.#lastStart);
    const isWhole = (its[0]?.start ?? 0) <= word.start && (its.at(-1)?.end ?? 0) >= word.end;
    const label = its.reduce<Timing>((timing, character) => weaker(timing, character.timing), "exact");
    this.#lastStart = startSeconds;
    return {
      text: word.text,
      start: word.start,
      end: word.end,
      startSeconds,
      endSeconds: Math.max(its.at(-1)?.endSeconds ?? startSeconds, startSeconds),
      timing: isWhole ? label : "estimated",
    };
  }
}
