/** Positions in a text on their way to their times. */
import type { Timing } from "../protocol/vocabulary.ts";

/** A span of the text of a segment. Its owner changes its times in place until it is emitted. */
export interface Span {
  /** UTF-16 offset in the segment's text, exclusive; it starts where the one before it ends. */
  readonly end: number;
  /** Seconds of the response; NaN = unknown. */
  startSeconds: number;
  endSeconds: number;
  timing: Timing;
  /** How far off an estimate may be; absent: not known. */
  readonly boundSeconds?: number;
}

/** Where audio lies in its response, seconds. */
export interface AudioSpan {
  readonly startSeconds: number;
  readonly endSeconds: number;
}

/** A part of the response's text. */
export interface TextPart {
  readonly text: string;
  /** Where in the response's text it begins, UTF-16. */
  readonly from: number;
}

/** Steps back, and beyond the audio, that are no fault: rounding, and what an encoder holds back. Seconds. */
export const TOLERANCE_SECONDS = 0.02;

const GRAPHEMES = new Intl.Segmenter("en", { granularity: "grapheme" });

export function isTimed(span: Span): boolean {
  return !Number.isNaN(span.startSeconds) && !Number.isNaN(span.endSeconds);
}

/** Its times are not known: the estimator gives it some. */
export function dropTimes(span: Span): void {
  span.startSeconds = Number.NaN;
  span.endSeconds = Number.NaN;
  span.timing = "estimated";
}

/** The characters of a text: graphemes, so that none is cut. */
export function charactersOf(text: string): string[] {
  return text.length === 1 ? [text] : Array.from(GRAPHEMES.segment(text), ({ segment }) => segment);
}
