/** Changes of times, in place. */
import type { ResponseEnd, Waiting } from "../span-times.ts";
import type { Span } from "../spans.ts";
import { weaker } from "../timed.ts";

/** Times that reach beyond the audio by no more are rounded. Seconds. */
const ROUNDING_SECONDS = 0.0015;

/** Moves times: `from` becomes `to`, and what follows is stretched by `factor`. */
export function stretch(
  spans: readonly Span[],
  { from, to, factor }: { readonly from: number; readonly to: number; readonly factor: number },
): void {
  for (const span of spans) {
    span.startSeconds = to + (span.startSeconds - from) * factor;
    span.endSeconds = to + (span.endSeconds - from) * factor;
    span.timing = weaker(span.timing, "scaled");
  }
}

export function weaken(spans: readonly Span[]): void {
  for (const span of spans) span.timing = "estimated";
}

/**
 * Times that are longer than their audio: what is left of them shrinks into what is left of that. `spans`: all that are not
 * emitted, with times.
 */
export function shrinkLong(
  spans: readonly Span[],
  { audioSeconds, soundSeconds, endsInLetter }: ResponseEnd,
  { fromSeconds, lastFrom }: Omit<Waiting, "spans">,
): void {
  const endSeconds = Math.max(audioSeconds, fromSeconds);
  const timesSeconds = spans.reduce((end, span) => Math.max(end, span.endSeconds), 0);
  if (timesSeconds <= endSeconds + ROUNDING_SECONDS) return;
  // Where chunks' times are too long, mostly those of the last one are.
  const before = spans.findLast(({ end }) => end <= lastFrom);
  const isLastAlone = before === undefined || before.endSeconds <= endSeconds;
  const long = isLastAlone ? spans.filter(({ end }) => end > lastFrom) : spans;
  const from = long[0]?.startSeconds ?? 0;
  const earliest = isLastAlone && before !== undefined ? before.endSeconds : fromSeconds;
  const to = from < endSeconds ? Math.max(from, earliest) : earliest;
  const until = endsInLetter && soundSeconds > to ? Math.min(soundSeconds, endSeconds) : endSeconds;
  const factor = timesSeconds > from ? Math.max(until - to, 0) / (timesSeconds - from) : 0;
  stretch(long, { from, to, factor });
  // Where in the last of the audio a letter ends is not known.
  if (endsInLetter) weaken(long);
}
