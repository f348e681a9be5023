/**
 * Captions of timed words: cues of one or two lines that break where the speech breaks, stay long enough to be read
 * where the pause allows it, and never overlap. Numbers: facts/protocols.md 6.3 (Netflix, BBC).
 */
import { bestCut, type CueLine, columnsOfLine, fitsTwoLines, layOut } from "./cue-layout.ts";
import { type BreakRank, newUnit, splitGap, splitWide, type Unit } from "./cue-units.ts";
import type { TimedWord } from "./timed.ts";

/** Seconds on the clock of the words; offsets are UTF-16, into the client's text, from the first word to the last. */
export interface Cue {
  readonly startSeconds: number;
  readonly endSeconds: number;
  readonly start: number;
  readonly end: number;
  readonly lines: readonly CueLine[];
}

export interface Break {
  readonly rank: BreakRank | "weak";
  /** UTF-16 offset of the first character behind it. */
  readonly at: number;
}

/** Finds where a text breaks; `text/boundaries.ts` has the real one (`new BoundaryFinder()`). */
export interface BreakSource {
  /** The breaks that this text decides; offsets are into all text pushed. */
  push(text: string): readonly Break[];
}

export interface CueOptions {
  readonly breaks: BreakSource;
  /** Latin characters a line; of Chinese, Japanese and Korean ones 16 where this is 42. */
  readonly maxLineChars?: number;
  /** A cue starts no earlier: where the utterance before left its last cue. */
  readonly notBeforeSeconds?: number;
}

const MIN_CUE_SECONDS = 5 / 6;
const MAX_CUE_SECONDS = 7;
const READING_CHARS_PER_SECOND = 17;
/** Between two cues, so that the eye sees the change: two frames of film. */
const CUE_GAP_SECONDS = 0.083;
/** A shorter hole between cues flickers: the cue stays until the next. */
const FLICKER_SECONDS = 0.5;
/** A pause that ends a cue wherever it comes. */
const PAUSE_SECONDS = 0.7;
/** A sentence shorter than this share of a line waits for the next one. */
const SHORT_SENTENCE = 1 / 3;

export class CueBuilder {
  readonly #breaks: BreakSource;
  readonly #maxColumns: number;
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

  constructor({ breaks, maxLineChars = 42, notBeforeSeconds = 0 }: CueOptions) {
    this.#breaks = breaks;
    this.#maxColumns = maxLineChars;
    this.#lastEndSeconds = notBeforeSeconds;
  }

  /** More of the client's text; it has to be there before its words. */
  append(text: string): void {
    this.#text += text;
    for (const found of this.#breaks.push(text)) this.#found.push(found);
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
      const rest = this.#text.slice(this.#open.word.end - this.#base);
      const { closing } = splitGap(/^[^\p{L}\p{N}\p{So}]*/u.exec(rest)?.[0] ?? "");
      this.#addUnit(closing.trimEnd(), "sentence");
      this.#open = null;
    }
    this.#close(this.#units.length, untilSeconds);
    return this.#out.splice(0);
  }

  #take(word: TimedWord): void {
    const open = this.#open;
    const from = open?.word.end ?? this.#base;
    const gap = splitGap(this.#text.slice(from - this.#base, word.start - this.#base));
    if (open !== null) this.#addUnit(gap.closing, this.#rankBefore(word.start));
    else this.#rankBefore(word.start);
    this.#closeWhatIsComplete(word);
    const opening = open === null ? `${gap.closing.trimStart()}${gap.opening}` : gap.opening;
    this.#open = { word, opening, hasSpaceBefore: open !== null && gap.hasSpace };
    this.#text = this.#text.slice(word.start - this.#base);
    this.#base = word.start;
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
    const unit = newUnit(shown, { hasSpaceBefore: open.hasSpaceBefore, rank, word: open.word });
    for (const part of splitWide(unit, this.#maxColumns)) {
      while (this.#units.length > 0 && !this.#hasRoomFor(part)) {
        const count = bestCut(this.#units);
        this.#close(count, this.#units[count]?.word.startSeconds ?? part.word.startSeconds);
      }
      this.#units.push(part);
    }
  }

  #hasRoomFor(unit: Unit): boolean {
    const startSeconds = this.#units[0]?.word.startSeconds ?? 0;
    const isTooLong = unit.word.endSeconds - startSeconds > MAX_CUE_SECONDS;
    return !isTooLong && fitsTwoLines([...this.#units, unit], this.#maxColumns);
  }

  /** Ends the cue before `next` at a pause, and at the end of a sentence that is long enough to stand alone. */
  #closeWhatIsComplete(next: TimedWord): void {
    const last = this.#units.at(-1);
    if (last === undefined) return;
    const isPause = next.startSeconds - last.word.endSeconds >= PAUSE_SECONDS;
    const isSentence =
      last.rank === "sentence" && columnsOfLine(this.#units) >= this.#maxColumns * SHORT_SENTENCE;
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
    const wanted = startSeconds + Math.max(MIN_CUE_SECONDS, columnsOfLine(units) / READING_CHARS_PER_SECOND);
    const free = nextSeconds - CUE_GAP_SECONDS;
    const isFlicker = nextSeconds - Math.max(spokenEnd, wanted) < FLICKER_SECONDS;
    const endSeconds = Math.max(spokenEnd, Math.min(isFlicker ? free : wanted, free));
    this.#lastEndSeconds = endSeconds;
    this.#out.push({
      startSeconds,
      endSeconds,
      start: first.word.start,
      end: last.word.end,
      lines: layOut(units, this.#maxColumns),
    });
  }
}
