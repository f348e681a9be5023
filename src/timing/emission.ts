/** From spans with times to what is emitted: times that rise and meet, and one for each character. */
import type { Timing } from "../protocol/vocabulary.ts";
import { charactersOf, isTimed, type Span } from "./spans.ts";
import { type TimedCharacters, weaker, widestBound } from "./timed.ts";

/** Characters that were moved and are no further apart than this meet: no one hears what lies between. */
export const JOIN_SECONDS = 0.005;
/** Rounding on the wire, and what a resampler holds back: times that are moved by less keep their label. */
export const EXACT_SECONDS = 0.0015;

/** Where emission has come to. */
export interface Emitted {
  /** UTF-16 offset in the segment's text. */
  to: number;
  /** End of the last character. */
  endSeconds: number;
  timing: Timing;
}

/** Emits spans, all of them with times; `next`: the one behind them. `text`: the segment's. */
export function emit(
  spans: readonly Span[],
  next: Span | undefined,
  { text, emitted }: { readonly text: string; readonly emitted: Emitted },
): TimedCharacters {
  const start = emitted.to;
  const characters: string[] = [];
  const startSeconds: number[] = [];
  const endSeconds: number[] = [];
  let timing: Timing = "exact";
  for (let i = 0; i < spans.length; i += 1) {
    const span = spans[i];
    if (span === undefined) continue;
    settle(span, emitted, spans[i + 1] ?? next);
    const parts = charactersOf(text.slice(emitted.to, span.end));
    timing = weaker(timing, span.timing);
    if (parts.length > 1) timing = weaker(timing, dividedTiming(parts.join("")));
    const total = span.endSeconds - span.startSeconds;
    for (let n = 0; n < parts.length; n += 1) {
      characters.push(parts[n] ?? "");
      startSeconds.push(span.startSeconds + (total * n) / parts.length);
      endSeconds.push(span.startSeconds + (total * (n + 1)) / parts.length);
    }
    emitted.to = span.end;
    emitted.endSeconds = span.endSeconds;
    emitted.timing = span.timing;
  }
  return { start, end: emitted.to, characters, startSeconds, endSeconds, timing, ...widestBound(spans) };
}

/** Makes a span rise from the one before it and end before the next starts. */
function settle(span: Span, before: Emitted, next: Span | undefined): void {
  // An end that was guessed at the end of the audio that had come is short of it by what an encoder held back.
  const behindSeconds = before.timing === "exact" ? 0 : EXACT_SECONDS;
  const joinSeconds = span.timing === "exact" ? behindSeconds : JOIN_SECONDS;
  const isJoined = span.startSeconds - before.endSeconds <= joinSeconds;
  const start = isJoined ? before.endSeconds : span.startSeconds;
  const nextStart = next !== undefined && isTimed(next) ? next.startSeconds : Number.POSITIVE_INFINITY;
  const end = Math.max(start, Math.min(span.endSeconds, nextStart));
  const moved = Math.max(Math.abs(start - span.startSeconds), Math.abs(end - span.endSeconds));
  if (moved > EXACT_SECONDS) span.timing = weaker(span.timing, "scaled");
  span.startSeconds = start;
  span.endSeconds = end;
}

/** How well the characters of a text are known that was timed as one: where it has several words, their ends are guesses. */
function dividedTiming(text: string): Timing {
  return /\S\s+\S/.test(text) ? "estimated" : "scaled";
}
