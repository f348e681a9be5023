/**
 * Times of words -> times of the characters of the text that was asked for. Services give words as they say them: without
 * punctuation, in another case, numbers written out. Each is looked for in the text, in order; its characters share its time,
 * or that of its sounds.
 *
 *   text     I  have     25        cats .
 *   words    I  have  twenty five  cats       not found: they stand for the text between their neighbours
 *
 * Where they stand for several words, nobody knows when each of those begins: none of them gets a time.
 * A word that was found too far away, or is too short to be sure of, waits until the next one follows it there.
 */
import type { Alignment } from "../../timing/alignment.ts";
import { charactersOf } from "../../timing/spans.ts";

export interface ServiceWord {
  readonly text: string;
  /** From the start of the answer's audio; NaN: not known. */
  readonly startSeconds: number;
  readonly endSeconds: number;
  /** When each of its sounds begins, rising. Without them its characters share its time evenly. */
  readonly soundStarts?: readonly number[];
}

/** Letters that may lie between two words: of what is not spoken, and for each that waits. */
const NEAR_LETTERS = 16;
const NEAR_LETTERS_A_WORD = 12;
/** A word that is shorter may be anywhere. */
const SURE_LETTERS = 4;
/** So far ahead a word is looked for that has to be confirmed. */
const FAR_LETTERS = 400;
/** A sentence has as many, at least. */
const LOST_LETTERS = 12;
/** Nobody speaks a letter in less. */
export const MIN_LETTER_SECONDS = 0.03;
/** Steps back that are rounding. */
const TOLERANCE_SECONDS = 0.02;
/** Times that go back by more count from somewhere else, and none behind them can be believed. */
const LOST_SECONDS = 0.3;
/** Words that wait to be found; more than a text can have are dropped. */
const MAX_WAITING = 256;
/** Scripts that put no space between words. */
export const UNSPACED =
  /[\p{scx=Han}\p{scx=Hiragana}\p{scx=Katakana}\p{scx=Thai}\p{scx=Lao}\p{scx=Khmer}\p{scx=Myanmar}]/u;
const LETTER = /[\p{L}\p{N}\p{Mc}]/u;

interface Waiting extends ServiceWord {
  readonly letters: string;
  /** Where it may be, among the letters; -1: nowhere. */
  readonly maybeAt: number;
}

export class WordMatcher {
  readonly #text: string;
  /** Letters and digits of the text alone, in one case. */
  readonly #letters: string;
  /** Where in the text the character of each begins, and ends. */
  readonly #starts: Uint32Array;
  readonly #ends: Uint32Array;
  /** The next letter that nobody has said. */
  #at = 0;
  /** Text up to here has its times, or never will. */
  #textAt = 0;
  #endSeconds = 0;
  #toldSeconds = 0;
  /** The word that came last has its time. */
  #isLastTold = false;
  #hasTimes = false;
  /** What was placed last has its time. */
  #isEndTimed = false;
  #isLost = false;
  #hasLost = false;
  #waiting: Waiting[] = [];
  /** What is to be given out next. */
  #characters: string[] = [];
  #charStarts: number[] = [];
  #charEnds: number[] = [];

  /** `spoken`: as long as the text, with blanks in the place of what is not spoken. */
  constructor(text: string, spoken: string = text) {
    this.#text = text;
    const read = lettersOf(spoken);
    this.#letters = read.letters;
    this.#starts = Uint32Array.from(read.starts);
    this.#ends = Uint32Array.from(read.ends);
  }

  /** Whether a word has come. */
  get hasWords(): boolean {
    return this.#at > 0 || this.#waiting.length > 0;
  }

  /** Letters behind the last word; 0 where what waits may stand for them. */
  get unsaidLetters(): number {
    return this.#waiting.length > 0 ? 0 : this.#letters.length - this.#at;
  }

  /** End of the last time. */
  get endSeconds(): number {
    return this.#endSeconds;
  }

  /** End of the latest word that came, whether it is one of the text or not. */
  get toldSeconds(): number {
    return this.#toldSeconds;
  }

  /** Whether so much of the text was passed over that nobody can have said it in the time between. */
  get hasLost(): boolean {
    return this.#hasLost;
  }

  /** Whether the text was said to its end, which has its time, and all times could be believed. */
  get isTimedToEnd(): boolean {
    return this.#isLastTold && this.unsaidLetters === 0 && !this.#isLost;
  }

  /** The characters that these words time; null: none yet. */
  push(words: readonly ServiceWord[]): Alignment | null {
    for (const word of words) this.#meet(word);
    return this.#take();
  }

  /** No words follow: those that wait stand for the end of the text. */
  finish(): Alignment | null {
    const last = this.#waiting.at(-1);
    if (last !== undefined && last.maybeAt >= 0 && this.#isEnd(last.maybeAt + last.letters.length)) {
      this.#waiting.pop();
      this.#place(last, last.maybeAt);
    }
    if (this.hasWords) this.#placeRest();
    return this.#take();
  }

  #meet(word: ServiceWord): void {
    const { letters } = lettersOf(word.text);
    if (letters === "") return;
    this.#isLastTold = Number.isFinite(word.endSeconds);
    if (this.#isLastTold) this.#toldSeconds = Math.max(this.#toldSeconds, word.endSeconds);
    const last = this.#waiting.at(-1);
    const confirmed = last === undefined || last.maybeAt < 0 ? -1 : last.maybeAt + last.letters.length;
    if (last !== undefined && confirmed >= 0 && this.#isAt(letters, confirmed)) {
      this.#waiting.pop();
      this.#place(last, last.maybeAt);
      this.#place(word, this.#at, letters.length);
      return;
    }
    if (this.#letters.startsWith(letters, this.#at) && this.#goesOn(letters)) {
      this.#place(word, this.#at, letters.length);
      return;
    }
    const found = this.#find(letters);
    const nearest = this.#at + NEAR_LETTERS + NEAR_LETTERS_A_WORD * this.#waiting.length;
    if (found >= 0 && found <= nearest && letters.length >= SURE_LETTERS) {
      this.#place(word, found, letters.length);
      return;
    }
    if (this.#waiting.length < MAX_WAITING) this.#waiting.push({ ...word, letters, maybeAt: found });
  }

  /** The next letters are a word, or a part of one that the service cuts here; or something rewritten begins like this. */
  #goesOn(letters: string): boolean {
    return this.#waiting.length === 0 || this.#isAt(letters, this.#at);
  }

  #find(letters: string): number {
    const until = this.#at + FAR_LETTERS;
    let at = this.#letters.indexOf(letters, this.#at);
    while (at >= 0 && at <= until) {
      if (this.#isAt(letters, at)) return at;
      at = this.#letters.indexOf(letters, at + 1);
    }
    return -1;
  }

  /** Whether the text has these letters there, as whole words. */
  #isAt(letters: string, at: number): boolean {
    return this.#letters.startsWith(letters, at) && this.#isStart(at) && this.#isEnd(at + letters.length);
  }

  #isStart(at: number): boolean {
    return at === 0 || at === this.#at || this.#isBetween(at);
  }

  #isEnd(at: number): boolean {
    return at === this.#letters.length || this.#isBetween(at);
  }

  /** Whether words may meet before this letter. */
  #isBetween(at: number): boolean {
    if (this.#ends[at - 1] !== this.#starts[at]) return true;
    return UNSPACED.test(this.#letters[at - 1] ?? "") || UNSPACED.test(this.#letters[at] ?? "");
  }

  /** The first letter that begins at an offset of the text or behind it. */
  #letterAt(offset: number): number {
    let [low, high] = [0, this.#starts.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#starts[middle] ?? 0) < offset) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #place(word: ServiceWord, at: number, length = (word as Waiting).letters.length): void {
    const isBelieved = this.#isBelieved(word);
    const start = this.#starts[at] ?? this.#text.length;
    const end = this.#ends[at + length - 1] ?? start;
    const startSeconds = isBelieved ? Math.max(word.startSeconds, this.#endSeconds) : Number.NaN;
    const passed = this.#waiting.length > 0 ? 0 : at - this.#at;
    if (passed >= LOST_LETTERS && startSeconds - this.#endSeconds < passed * MIN_LETTER_SECONDS)
      this.#hasLost = true;
    this.#placeBetween(start, at > this.#at, startSeconds);
    const endSeconds = isBelieved ? Math.max(word.endSeconds, startSeconds) : Number.NaN;
    this.#spread(end, startSeconds, endSeconds, word.soundStarts);
    this.#at = at + length;
  }

  #isBelieved({ startSeconds, endSeconds }: ServiceWord): boolean {
    if (!(startSeconds >= 0 && Number.isFinite(endSeconds)) || !Number.isFinite(startSeconds)) return false;
    if (startSeconds < this.#endSeconds - LOST_SECONDS) this.#isLost = true;
    return !this.#isLost && startSeconds >= this.#endSeconds - TOLERANCE_SECONDS;
  }

  /** The text before a word: what waits stands for it. `hasLetters`: it is more than space and punctuation. */
  #placeBetween(end: number, hasLetters: boolean, untilSeconds: number): void {
    const waiting = this.#waiting.splice(0);
    const [first, last] = [waiting[0], waiting.at(-1)];
    if (!hasLetters) {
      this.#spread(end, this.#placedSeconds, untilSeconds);
      return;
    }
    const fromLetter = this.#starts[this.#at] ?? end;
    const toLetter = this.#ends[this.#letterAt(end) - 1] ?? end;
    const isBelieved = first !== undefined && last !== undefined && this.#isBelieved(first);
    const isTimed = isBelieved && !isSeveralWords(this.#text.slice(fromLetter, toLetter));
    const startSeconds = isTimed ? Math.max(first.startSeconds, this.#endSeconds) : Number.NaN;
    this.#spread(fromLetter, this.#placedSeconds, startSeconds);
    this.#spread(toLetter, startSeconds, isTimed ? Math.max(last.endSeconds, startSeconds) : Number.NaN);
    this.#spread(end, this.#placedSeconds, untilSeconds);
  }

  #placeRest(): void {
    if (this.#waiting.length > 0 && this.#mayStandForRest()) {
      this.#placeBetween(this.#ends.at(-1) ?? 0, true, Number.NaN);
      this.#at = this.#letters.length;
    }
    this.#waiting = [];
    // Letters that nobody said have no times, nor has what is behind them.
    if (this.#at < this.#letters.length) return;
    const seconds = this.#hasTimes ? this.#placedSeconds : Number.NaN;
    this.#spread(this.#text.length, seconds, seconds);
  }

  /**
   * Where what was placed last ends; NaN: it has no time. With the end of the times before it, what stands behind it would leave
   * it none of the audio.
   */
  get #placedSeconds(): number {
    return this.#isEndTimed || this.#textAt === 0 ? this.#endSeconds : Number.NaN;
  }

  /** Words that wait take as long as the rest of the text needs at least: they are it, in other words. */
  #mayStandForRest(): boolean {
    const [first, last] = [this.#waiting[0], this.#waiting.at(-1)];
    const restLetters = this.#letters.length - this.#at;
    if (first === undefined || last === undefined || restLetters === 0) return false;
    const seconds = last.endSeconds - first.startSeconds;
    return Number.isNaN(seconds) || seconds >= restLetters * MIN_LETTER_SECONDS;
  }

  /** Gives the text up to `end` these times, each character its share; NaN: not known. */
  #spread(end: number, startSeconds: number, endSeconds: number, soundStarts: readonly number[] = []): void {
    if (end <= this.#textAt) return;
    if (!this.#hasTimes && startSeconds > TOLERANCE_SECONDS) this.#begin(startSeconds);
    const characters = charactersOf(this.#text.slice(this.#textAt, end));
    const isKnown = endSeconds >= startSeconds;
    const timeAt = placesOf(startSeconds, endSeconds, soundStarts);
    for (const [index, character] of characters.entries()) {
      this.#characters.push(character);
      this.#charStarts.push(isKnown ? timeAt(index / characters.length) : Number.NaN);
      this.#charEnds.push(isKnown ? timeAt((index + 1) / characters.length) : Number.NaN);
    }
    this.#textAt = end;
    this.#isEndTimed = isKnown;
    if (!isKnown) return;
    this.#hasTimes = true;
    this.#endSeconds = endSeconds;
  }

  /** The silence before the first word, said as a space: nothing of the text is missing there. */
  #begin(seconds: number): void {
    this.#hasTimes = true;
    if (this.#textAt > 0 || /^\s/.test(this.#text)) return;
    this.#characters.push(" ");
    this.#charStarts.push(0);
    this.#charEnds.push(seconds);
  }

  #take(): Alignment | null {
    if (this.#characters.length === 0) return null;
    const alignment = {
      characters: this.#characters,
      character_start_times_seconds: this.#charStarts,
      character_end_times_seconds: this.#charEnds,
    };
    this.#characters = [];
    this.#charStarts = [];
    this.#charEnds = [];
    return alignment;
  }
}

/** Where each share of a word, 0 to 1, is in its time: each of its sounds has as many of its letters. */
function placesOf(
  startSeconds: number,
  endSeconds: number,
  soundStarts: readonly number[],
): (share: number) => number {
  const inside = soundStarts.filter((seconds) => seconds > startSeconds && seconds < endSeconds);
  const edges = [startSeconds, ...inside, endSeconds];
  const sounds = edges.length - 1;
  return (share) => {
    const index = Math.min(Math.floor(share * sounds), sounds - 1);
    const [from = startSeconds, until = endSeconds] = [edges[index], edges[index + 1]];
    return from + (share * sounds - index) * (until - from);
  };
}

/** Two letters of a script without spaces may be two words. */
function isSeveralWords(text: string): boolean {
  return /\s/.test(text) || [...text].filter((character) => UNSPACED.test(character)).length > 1;
}

function lettersOf(text: string): {
  readonly letters: string;
  readonly starts: readonly number[];
  readonly ends: readonly number[];
} {
  let letters = "";
  const starts: number[] = [];
  const ends: number[] = [];
  let at = 0;
  for (const character of text) {
    const end = at + character.length;
    for (const unit of plain(character)) {
      letters += unit;
      for (let i = 0; i < unit.length; i += 1) {
        starts.push(at);
        ends.push(end);
      }
    }
    at = end;
  }
  return { letters, starts, ends };
}

/** Its letters without accents, in lower case; nothing for punctuation. */
function plain(character: string): string {
  if (/^[a-z0-9]$/.test(character)) return character;
  if (!LETTER.test(character)) return "";
  return [...character.normalize("NFKD").toLowerCase()].filter((unit) => LETTER.test(unit)).join("");
}
