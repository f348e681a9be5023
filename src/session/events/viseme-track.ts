/** The mouth shapes of one segment: made of its spoken words, once their places on the timeline are final. */
import type { Timing, VisemeSet } from "../../protocol/vocabulary.ts";
import { msOfTicks } from "../../timing/ticks.ts";
import { type TimedCharacters, type TimedWord, weaker } from "../../timing/timed.ts";
import { layOut, MIN_VISEME_MS, type TimedPhone, type TimedViseme } from "../../timing/visemes/lay-out.ts";
import { PHONES } from "../../timing/visemes/phones.ts";
import { soundsOfWord } from "../../timing/visemes/pronounce.ts";
import { taggedPhones } from "../../timing/visemes/tagged-phones.ts";
import { arkitWeights, visemeOf } from "../../timing/visemes/viseme-sets.ts";
import type { EventBuilder } from "./event-writer.ts";

/** Letters whose word has not come; a longer word's times within it are spread evenly. */
const MAX_LETTERS = 1024;

export interface VisemeTrackOptions {
  readonly utteranceId: string;
  /** ISO 639-1, where the client named one. */
  readonly language: string | undefined;
  /** The spoken text. */
  readonly text: () => string;
  /** Where on the timeline a moment of the response is. */
  readonly ticksAt: (seconds: number) => number;
}

interface Sound {
  readonly phone: TimedPhone["phone"];
  readonly seconds: number;
}

/** Words that came together. */
interface VisemeBatch {
  readonly words: readonly TimedWord[];
  /** When each sound of each word begins. */
  readonly sounds: readonly (readonly Sound[])[];
  /** The words behind, once they have come. */
  next: VisemeBatch | null;
}

export class VisemeTrack {
  readonly #options: VisemeTrackOptions;
  readonly #letters: { readonly offset: number; readonly seconds: number }[] = [];
  #last: VisemeBatch | null = null;
  /** Up to where shapes were emitted. */
  readonly #emittedToMs = new Map<VisemeSet, number>();

  constructor(options: VisemeTrackOptions) {
    this.#options = options;
  }

  /** The last word that has come. */
  get lastWord(): TimedWord | undefined {
    return this.#last?.words.at(-1);
  }

  /** When letters of the spoken text begin: before the words that have them. */
  noteCharacters(timed: TimedCharacters): void {
    let offset = timed.start;
    timed.characters.forEach((character, index) => {
      this.#letters.push({ offset, seconds: timed.startSeconds[index] ?? 0 });
      offset += character.length;
    });
    if (this.#letters.length > MAX_LETTERS) this.#letters.splice(0, this.#letters.length - MAX_LETTERS);
  }

  noteWords(words: readonly TimedWord[]): VisemeBatch {
    const batch = { words, sounds: words.map((word) => this.#soundsOf(word)), next: null };
    const end = words.at(-1)?.end ?? 0;
    const behind = this.#letters.findIndex(({ offset }) => offset >= end);
    this.#letters.splice(0, behind < 0 ? this.#letters.length : behind);
    if (this.#last !== null) this.#last.next = batch;
    this.#last = batch;
    return batch;
  }

  /** The event of words that begin before `spokenEnd`; null where nothing is left of them. */
  builder(batch: VisemeBatch, set: VisemeSet, spokenEnd: number): EventBuilder | null {
    const shapes: TimedViseme[] = [];
    let timing: Timing = "exact";
    for (const [index, word] of batch.words.entries()) {
      if (word.start >= spokenEnd) break;
      const startMs = Math.max(this.#msAt(word.startSeconds), this.#emittedTo(set));
      const endMs = Math.max(this.#msAt(word.endSeconds), startMs);
      this.#pauseUntil(startMs, set, shapes);
      const sounds = batch.sounds[index] ?? [];
      const phones = sounds.map(({ phone, seconds }) => ({ phone, startMs: this.#msAt(seconds) }));
      const laid = layOut(phones, { startMs, endMs }, set);
      shapes.push(...laid);
      if (laid.length > 0) this.#emittedToMs.set(set, endMs);
      timing = weaker(timing, word.timing);
    }
    const next = batch.next?.words[0];
    if (next !== undefined && next.start < spokenEnd) {
      this.#pauseUntil(this.#msAt(next.startSeconds), set, shapes);
    }
    return this.#eventOf(shapes, set, timing);
  }

  /** The pause behind the last word, up to where the segment's audio ends. */
  closing(set: VisemeSet, endTicks: number): EventBuilder | null {
    const shapes: TimedViseme[] = [];
    // However short: who holds a shape until the next would keep the mouth open.
    if (this.#emittedToMs.has(set)) this.#close(msOfTicks(endTicks), set, shapes);
    // It begins where the last word ends, and nobody knows that better than the word.
    return this.#eventOf(shapes, set, this.lastWord?.timing ?? "exact");
  }

  /** The mouth is closed from the last emitted shape up to there, if that is long enough to be seen. */
  #pauseUntil(endMs: number, set: VisemeSet, shapes: TimedViseme[]): void {
    if (endMs - this.#emittedTo(set) >= MIN_VISEME_MS) this.#close(endMs, set, shapes);
  }

  #close(endMs: number, set: VisemeSet, shapes: TimedViseme[]): void {
    const startMs = this.#emittedTo(set);
    if (endMs <= startMs) return;
    shapes.push({ viseme: visemeOf(null, set), startMs, endMs });
    this.#emittedToMs.set(set, endMs);
  }

  #emittedTo(set: VisemeSet): number {
    return this.#emittedToMs.get(set) ?? this.#msAt(0);
  }

  #msAt(seconds: number): number {
    return msOfTicks(this.#options.ticksAt(seconds));
  }

  #eventOf(shapes: readonly TimedViseme[], set: VisemeSet, timing: Timing): EventBuilder | null {
    if (shapes.length === 0) return null;
    const utterance_id = this.#options.utteranceId;
    return (base) => ({
      type: "viseme",
      ...base,
      utterance_id,
      set,
      visemes: shapes.map(({ viseme }) => viseme),
      vtimes_ms: shapes.map(({ startMs }) => rounded(startMs)),
      vdurations_ms: shapes.map(({ startMs, endMs }) => rounded(endMs - startMs)),
      ...(set === "arkit" ? { weights: shapes.map(({ viseme }) => arkitWeights(viseme)) } : {}),
      timing,
    });
  }

  #soundsOf(word: TimedWord): Sound[] {
    const tagged = taggedPhones(this.#options.text(), word);
    const parts =
      tagged === null
        ? soundsOfWord(word.text, this.#options.language)
        : [{ start: 0, end: word.text.length, phones: tagged }];
    return parts.flatMap(({ start, end, phones }) => {
      const from = this.#secondsAt(word, word.start + start);
      const length = this.#secondsAt(word, word.start + end) - from;
      const total = phones.reduce((sum, phone) => sum + weightOf(phone), 0);
      let said = 0;
      return phones.map((phone) => {
        const seconds = from + (length * said) / total;
        said += weightOf(phone);
        return { phone, seconds };
      });
    });
  }

  /** When a letter of a word begins. Where that is not known, all letters of the word count as equally long. */
  #secondsAt(word: TimedWord, offset: number): number {
    if (offset >= word.end) return word.endSeconds;
    const letter = this.#letters.find((one) => one.offset === offset);
    const share = (offset - word.start) / Math.max(1, word.end - word.start);
    const seconds = letter?.seconds ?? word.startSeconds + share * (word.endSeconds - word.startSeconds);
    return Math.min(Math.max(seconds, word.startSeconds), word.endSeconds);
  }
}

/** Vowels last about twice as long as consonants. */
function weightOf(phone: TimedPhone["phone"]): number {
  return PHONES[phone].isVowel ? 2 : 1;
}

/** To 0.001 ms, as all times of events. */
function rounded(ms: number): number {
  return Math.round(ms * 1000) / 1000;
}
