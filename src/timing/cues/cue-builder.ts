/**
 * Captions of timed words: cues of one or two lines that break where the speech breaks, stay long enough to be read
 * where the pause allows it, and never overlap. The numbers are in `cue-profiles.ts`.
 */

import type { TimedWord } from "../timed.ts";
import { bestCut, type CueLine, columnsOfLine, fitsTwoLines, layOut } from "./cue-layout.ts";
import { type CueNumbers, cueNumbers, scriptOf, type WideScript, wideNumbers } from "./cue-profiles.ts";
import {
  type BreakRank,
  closingOf,
  countWide,
  type Gap,
  newUnit,
  splitGap,
  splitGapAt,
  splitWide,
  type Unit,
} from "./cue-units.ts";

/** Seconds on the clock of the words; offsets are UTF-16, into the client's text, from the first word to the last. */
export interface Cue {
  readonly startSeconds: number;
  readonly endSeconds: number;
  readonly start: number;
  readonly end: number;
  readonly lines: readonly CueLine[];
  /** Who says it, where that is known. */
  readonly voice?: CueVoice;
}

export interface CueVoice {
  readonly voiceId: string;
  /** The speaker's name in a dialogue, as people read it. */
  readonly speaker?: string;
}

interface Break {
  readonly rank: BreakRank | "weak";
  /** UTF-16 offset of the first character behind it. */
  readonly at: number;
}

/** Finds where a text breaks; `text/boundaries.ts` has the real one (`new BoundaryFinder()`). */
interface BreakSource {
  /** The breaks that this text decides; offsets are into all text pushed. */
  push(text: string): readonly Break[];
}

export interface CueOptions {
  readonly breaks: BreakSource;
  /** Default: those of `web`, pop-on. */
  readonly numbers?: CueNumbers;
  /** A cue starts no earlier. */
  readonly notBeforeSeconds?: number;
}

/** A pause that ends a cue wherever it comes. */
const PAUSE_SECONDS = 0.7;
/** A sentence shorter than this share of a line waits for the next one. */
const SHORT_SENTENCE = 1 / 3;
const WEB = cueNumbers({ profile: "web", mode: "pop-on" });

export class CueBuilder {
  readonly #breaks: BreakSource;
  readonly #numbers: CueNumbers;
  /** By the text so far: Chinese until it has letters of another one. */
  #script: WideScript = "chinese";
  /** Offsets where another voice begins, rising; those behind the open word. */
  #voiceStarts: number[] = [];
  /** Client's text from `#base` on. */
  #text = "";
  #base = 0;
  /** Breaks found, rising but for a few; those before `#nextBreak` are behind the open word. */
  #found: Break[] = [];
  #nextBreak = 0;
  /** The word whose punctuation is not known before the next word is. */
  #open: { readonly word: TimedWord; readonly opening: string; readonly hasSpaceBefore: boolean } | null =
    null;
  #units: Unit[] = [];
  #lastEndSeconds: number;
  #out: Cue[] = [];

  constructor({ breaks, numbers = WEB, notBeforeSeconds = 0 }: CueOptions) {
    this.#breaks = breaks;
    this.#numbers = numbers;
    this.#lastEndSeconds = notBeforeSeconds;
  }

  /** More of the client's text; it has to be there before its words. */
  append(text: string): void {
    this.#text += text;
    if (this.#script === "chinese") this.#script = scriptOf(text) ?? "chinese";
    for (const found of this.#breaks.push(text)) this.#found.push(found);
  }

  /** Another voice begins at `at`, before the words there: no cue goes over it. */
  noteVoice(at: number): void {
    this.#voiceStarts.push(at);
  }

  /** Takes words in order, and gives the cues that they complete. */
  push(words: readonly TimedWord[]): Cue[] {
    for (const word of words) this.#take(word);
    return this.#out.splice(0);
  }

  /** No word follows. `untilSeconds`: how long the last cue may stay, where the reader would want more time. */
  flush(untilSeconds = Number.POSITIVE_INFINITY): Cue[] {
    if (this.#open !== null) {
      // What was not spoken (an interruption) is not shown: only the marks up to the next word.
      this.#addUnit(closingOf(this.#text.slice(this.#open.word.end - this.#base)), "sentence");
      this.#open = null;
    }
    this.#close(this.#units.length, untilSeconds);
    return this.#out.splice(0);
  }

  #take(word: TimedWord): void {
    const open = this.#open;
    const from = open?.word.end ?? this.#base;
    const voiceStart = this.#voiceStartBefore(word.start);
    const gap = this.#gap(from, word.start, voiceStart);
    const rank = this.#rankBefore(word.start);
    if (open !== null) this.#addUnit(gap.closing, voiceStart === null ? rank : "sentence");
    if (voiceStart === null) this.#closeWhatIsComplete(word);
    else this.#close(this.#units.length, word.startSeconds);
    const opening = open === null ? `${gap.closing.trimStart()}${gap.opening}` : gap.opening;
    this.#open = { word, opening, hasSpaceBefore: open !== null && gap.hasSpace };
    this.#text = this.#text.slice(word.start - this.#base);
    this.#base = word.start;
  }

  /** Where the voice of the word there begins, if it is not that of the word before. */
  #voiceStartBefore(start: number): number | null {
    let last: number | null = null;
    while (this.#voiceStarts[0] !== undefined && this.#voiceStarts[0] <= start) {
      last = this.#voiceStarts.shift() ?? null;
    }
    return last;
  }

  #gap(from: number, to: number, voiceStart: number | null): Gap {
    const text = this.#text.slice(from - this.#base, to - this.#base);
    return voiceStart === null ? splitGap(text) : splitGapAt(text, Math.max(0, voiceStart - from));
  }

  /** The best break between the open word and the next one. */
  #rankBefore(start: number): BreakRank {
    let best: BreakRank = "word";
    for (;;) {
      const found = this.#found[this.#nextBreak];
      if (found === undefined || found.at > start) break;
      this.#nextBreak += 1;
      if (found.at < (this.#open?.word.end ?? 0)) continue;
      if (found.rank === "sentence" || (found.rank === "clause" && best === "word")) best = found.rank;
    }
    if (this.#nextBreak > this.#found.length / 2) {
      this.#found = this.#found.slice(this.#nextBreak);
      this.#nextBreak = 0;
    }
    return best;
  }

  #addUnit(closing: string, rank: BreakRank): void {
    const open = this.#open;
    if (open === null) return;
    const shown = `${open.opening}${open.word.text}${closing}`;
    const { columns } = wideNumbers(this.#script);
    const unit = newUnit(shown, { hasSpaceBefore: open.hasSpaceBefore, rank, word: open.word }, columns);
    for (const part of splitWide(unit, this.#numbers.maxColumns, columns)) {
      while (this.#units.length > 0 && !this.#hasRoomFor(part)) {
        const count = bestCut(this.#units);
        this.#close(count, this.#units[count]?.word.startSeconds ?? part.word.startSeconds);
      }
      this.#units.push(part);
    }
  }

  #hasRoomFor(unit: Unit): boolean {
    const startSeconds = this.#units[0]?.word.startSeconds ?? 0;
    const isTooLong = unit.word.endSeconds - startSeconds > this.#numbers.maxSeconds;
    return !isTooLong && fitsTwoLines([...this.#units, unit], this.#numbers.maxColumns);
  }

  /** Ends the cue before `next` at a pause, and at the end of a sentence that is long enough to stand alone. */
  #closeWhatIsComplete(next: TimedWord): void {
    const last = this.#units.at(-1);
    if (last === undefined) return;
    const isPause = next.startSeconds - last.word.endSeconds >= PAUSE_SECONDS;
    const isSentence =
      last.rank === "sentence" && columnsOfLine(this.#units) >= this.#numbers.maxColumns * SHORT_SENTENCE;
    if (isPause || isSentence) this.#close(this.#units.length, next.startSeconds);
  }

  /** Makes a cue of the first `count` units; `nextSeconds`: when the next one starts. */
  #close(count: number, nextSeconds: number): void {
    const units = this.#units.slice(0, count);
    const [first] = units;
    const last = units.at(-1);
    if (first === undefined || last === undefined) return;
    this.#units = this.#units.slice(count);
    const startSeconds = Math.max(first.word.startSeconds, this.#lastEndSeconds);
    const spokenEnd = Math.max(last.word.endSeconds, startSeconds);
    const { minSeconds, gapSeconds, flickerSeconds } = this.#numbers;
    const wanted = startSeconds + Math.max(minSeconds, this.#readingSeconds(units));
    const free = nextSeconds - gapSeconds;
    const isFlicker = nextSeconds - Math.max(spokenEnd, wanted) < flickerSeconds;
    const endSeconds = Math.max(spokenEnd, Math.min(isFlicker ? free : wanted, free));
    this.#lastEndSeconds = endSeconds;
    this.#out.push({
      startSeconds,
      endSeconds,
      start: first.word.start,
      end: last.word.end,
      lines: layOut(units, this.#numbers.maxColumns),
    });
  }

  /** How long it takes to read them. */
  #readingSeconds(units: readonly Unit[]): number {
    const wide = wideNumbers(this.#script);
    const wideCount = units.reduce((count, unit) => count + countWide(unit.shown), 0);
    const narrow = Math.max(0, columnsOfLine(units) - wideCount * wide.columns);
    return narrow / this.#numbers.charsPerSecond + wideCount / wide.charsPerSecond;
  }
}
