/**
 * Makes timed words of timed characters. A word comes out once, when its last character has its time; so no word is ever cut
 * in two, however its times are split.
 */
import type { Timing } from "../protocol/vocabulary.ts";
import { type TimedCharacters, type TimedWord, weaker, widestBound } from "./timed.ts";

interface TextWord {
  readonly text: string;
  readonly start: number;
  readonly end: number;
}

interface TimedCharacter {
  readonly start: number;
  readonly end: number;
  readonly startSeconds: number;
  readonly endSeconds: number;
  readonly timing: Timing;
  readonly boundSeconds: number | undefined;
}

export class WordTracker {
  readonly #words: readonly TextWord[];
  /** The first word that did not come out yet. */
  #nextWord = 0;
  /** Characters that a coming word may need, in order. */
  #characters: TimedCharacter[] = [];
  #timedTo = 0;
  #lastStart = 0;

  /** `words`: of the text whose characters will be pushed, rising. */
  constructor(words: readonly TextWord[]) {
    this.#words = words;
  }

  /** Takes characters in the order of the text, and gives the words that are complete now. */
  push(timed: TimedCharacters): TimedWord[] {
    const { timing, boundSeconds } = timed;
    let start = timed.start;
    for (let i = 0; i < timed.characters.length; i += 1) {
      const end = start + (timed.characters[i]?.length ?? 0);
      const startSeconds = timed.startSeconds[i] ?? 0;
      const endSeconds = timed.endSeconds[i] ?? startSeconds;
      // A character that was timed before keeps its first time.
      if (start >= this.#timedTo) {
        this.#characters.push({ start, end, startSeconds, endSeconds, timing, boundSeconds });
        this.#timedTo = end;
      }
      start = end;
    }
    let end = this.#nextWord;
    while ((this.#words[end]?.end ?? Number.POSITIVE_INFINITY) <= this.#timedTo) end += 1;
    return this.#wordsUpTo(end);
  }

  /** Nothing follows: the rest. Words of which no character was timed were not spoken and don't come out. */
  finish(): TimedWord[] {
    return this.#wordsUpTo(this.#words.length);
  }

  #wordsUpTo(end: number): TimedWord[] {
    if (end === this.#nextWord) return [];
    const words = this.#words.slice(this.#nextWord, end);
    this.#nextWord = end;
    return this.#timeWords(words);
  }

  #timeWords(words: readonly TextWord[]): TimedWord[] {
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

  #timeWord(word: TextWord, its: readonly TimedCharacter[]): TimedWord {
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
      ...(isWhole ? widestBound(its) : {}),
    };
  }
}
