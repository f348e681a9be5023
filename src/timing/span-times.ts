/** Which of an upstream's times are believed. */
import { type AudioSpan, dropTimes, isTimed, type Span, TOLERANCE_SECONDS } from "./spans.ts";

/** What one chunk says of the times of its text. */
export interface ChunkTimes {
  /** In the order of the text. */
  readonly spans: readonly Span[];
  /** The chunk's audio; null where that is not known. */
  readonly audio: AudioSpan | null;
  /** They are those of the first text of the response. */
  readonly isTextStart: boolean;
}

export interface ResponseEnd {
  /** All of the response's audio. */
  readonly audioSeconds: number;
  /** Up to its last sound; 0 where that is not known. */
  readonly soundSeconds: number;
  /** The text does: the silence behind punctuation is its own, a letter ends about with its sound. */
  readonly endsInLetter: boolean;
}

/** What came out already and still waits for its audio. */
export interface Waiting {
  readonly spans: readonly Span[];
  /** Where times begin that are not emitted yet. */
  readonly fromSeconds: number;
  /** Where in the text the last chunk's times begin; offset, UTF-16. */
  readonly lastFrom: number;
}

/**
 * Takes spans in the order of the text and gives them back in that order: now, or with a later chunk that shows what
 * their times are worth. Spans whose times are not known come back without any.
 */
export interface SpanTimes {
  push(chunk: ChunkTimes): readonly Span[];
  /** The response is complete: the rest. What waits may still be changed. */
  finish(end: ResponseEnd, waiting: Waiting): readonly Span[];
}

/** Believes times that go forward, and no others: what it leaves as `exact` is what the upstream said. */
export class StrictTimes implements SpanTimes {
  #lastEnd = 0;

  push({ spans }: ChunkTimes): readonly Span[] {
    completeTimes(spans);
    for (const span of spans) {
      if (!isTimed(span)) continue;
      if (span.startSeconds < this.#lastEnd - TOLERANCE_SECONDS) dropTimes(span);
      else this.#lastEnd = Math.max(this.#lastEnd, span.endSeconds);
    }
    return spans;
  }

  finish(): readonly Span[] {
    return [];
  }
}

/** A span with one of its times has the other from its neighbour, as an estimate; without a neighbour it has none. */
export function completeTimes(spans: readonly Span[]): void {
  for (let i = 0; i < spans.length; i += 1) {
    const span = spans[i];
    if (span === undefined) continue;
    const hasNone = Number.isNaN(span.startSeconds) && Number.isNaN(span.endSeconds);
    if (hasNone || span.endSeconds >= span.startSeconds) continue;
    span.timing = "estimated";
    if (Number.isNaN(span.startSeconds)) span.startSeconds = spans[i - 1]?.endSeconds ?? Number.NaN;
    else span.endSeconds = spans[i + 1]?.startSeconds ?? Number.NaN;
    if (!(span.endSeconds >= span.startSeconds)) dropTimes(span);
  }
}
