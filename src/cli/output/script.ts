/**
 * What is being spoken, as it is shown: the text of all utterances in one string, and the time of each word in it.
 * Text arrives before its timing (tokens as they are typed), words arrive by offsets into their utterance's text.
 */

import type { Recovered } from "../../client/recovery.ts";
import type { Word } from "../../protocol/events.ts";
import { safeText } from "./terminal-text.ts";

/** A range of the shown text. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

interface Piece {
  readonly utteranceId: string;
  /** Offsets into the utterance's text. */
  readonly start: number;
  readonly end: number;
  /** Where `start` stands in the shown text. */
  readonly shownAt: number;
}

interface TimedSpan extends Span {
  readonly utteranceId: string;
  /** Offset into the utterance's text. */
  readonly offset: number;
  readonly startMs: number;
  readonly endMs: number;
}

const CLOSING = /^[\p{P}\p{S}]*/u;
const MAX_CLOSING_CHARS = 8;
/** Words and pieces of text that are kept behind the current one. */
const MAX_KEPT = 256;

export class Script {
  #text = "";
  readonly #pieces: Piece[] = [];
  readonly #words: TimedSpan[] = [];
  /** Words before this index have begun; time only goes forward. */
  #begun = 0;

  /** Everything that is shown, spoken or not. */
  get text(): string {
    return this.#text;
  }

  /** Shows `text` without it being spoken: a name before a line, a line break. */
  decorate(text: string): void {
    this.#text += safeText(text);
  }

  /** Shows the text of `utteranceId` from its offset `start` on. */
  append(text: string, at: { readonly utteranceId: string; readonly start: number }): void {
    if (text === "") return;
    const last = this.#pieces.at(-1);
    const isContinuation =
      last !== undefined &&
      last.utteranceId === at.utteranceId &&
      last.end === at.start &&
      last.shownAt + (last.end - last.start) === this.#text.length;
    const piece: Piece = isContinuation
      ? { ...last, end: last.end + text.length }
      : { ...at, end: at.start + text.length, shownAt: this.#text.length };
    this.#text += safeText(text);
    if (isContinuation) this.#pieces[this.#pieces.length - 1] = piece;
    else this.#pieces.push(piece);
  }

  /** Times a word. Words of text that is not shown are ignored. */
  time(utteranceId: string, word: Pick<Word, "text" | "start" | "end" | "start_ms" | "end_ms">): void {
    const piece = this.#pieces.findLast(
      (candidate) =>
        candidate.utteranceId === utteranceId && word.start >= candidate.start && word.start < candidate.end,
    );
    if (piece === undefined) return;
    const start = piece.shownAt + word.start - piece.start;
    const end = piece.shownAt + Math.min(word.end, piece.end) - piece.start;
    const { start: offset, start_ms: startMs, end_ms: endMs } = word;
    this.#words.push({ start, end, utteranceId, offset, startMs, endMs });
  }

  /** Forgets the times of an utterance's words from an offset on: they come again. The text stays. */
  recovered({ utterance_id: utteranceId, start }: Recovered): void {
    const isVoid = (word: TimedSpan): boolean => word.utteranceId === utteranceId && word.offset >= start;
    const first = this.#words.findIndex(isVoid);
    if (first < 0) return;
    // It was cut where they are: nothing else has been timed behind them.
    this.#words.splice(first);
    this.#begun = Math.min(this.#begun, first);
  }

  /** Forgets the times of words from `atMs` on: they are not played, or come again. The text stays. */
  cut(atMs: number): void {
    const kept = this.#words.filter(({ startMs }) => startMs < atMs);
    this.#words.splice(0, this.#words.length, ...kept);
    this.#begun = Math.min(this.#begun, kept.length);
  }

  /**
   * The word that is spoken at `positionMs`, or the empty range behind the last one in a pause. Everything before
   * the range is spoken. Call with positions that rise.
   */
  spanAt(positionMs: number): Span {
    while (positionMs >= (this.#words[this.#begun]?.startMs ?? Number.POSITIVE_INFINITY)) this.#begun++;
    this.#forget();
    const word = this.#words[this.#begun - 1];
    if (word === undefined) return { start: 0, end: 0 };
    if (positionMs < word.endMs) return word;
    // The full stop behind a spoken word is spoken too.
    const closing = CLOSING.exec(this.#text.slice(word.end, word.end + MAX_CLOSING_CHARS))?.[0] ?? "";
    const end = word.end + closing.length;
    return { start: end, end };
  }

  /** Words before the current one are never asked for again: who listens for a day must not keep them. */
  #forget(): void {
    if (this.#begun > MAX_KEPT) {
      this.#words.splice(0, this.#begun - 1);
      this.#begun = 1;
    }
    if (this.#pieces.length > 2 * MAX_KEPT) this.#pieces.splice(0, MAX_KEPT);
  }
}
