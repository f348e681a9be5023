/**
 * A response that broke off after some of it was taken: it is spoken up to the last word whose time is known, and the rest
 * of its text is asked for again. Where no time is known, or more was heard than has times, the utterance fails.
 *
 *   asked    |the quick brown fox jumps|
 *   came     |the quick brown f|            broke off
 *   spoken   |the quick brown|fox jumps|    kept up to the last whole word; the rest is another segment
 */

import type { EventWriter } from "../events/event-writer.ts";
import { writeRecovered } from "../events/utterance-events.ts";
import { remainderOf } from "../remainder.ts";
import type { SessionDeps } from "../session-deps.ts";
import { isWorthAnotherTry } from "../synthesis/upstream-attempt.ts";
import type { KnownEnd } from "./known-end.ts";
import type { SegmentRenderer } from "./segment-renderer.ts";
import type { Utterance } from "./utterance.ts";

/**
 * Ends the segment whose attempt failed. False where it can't go on: the failure would come again, no time is
 * known, or it broke off from the same place too often. Throws what breaks the audio.
 */
export function recover(segmentRenderer: SegmentRenderer, nowMs: number): boolean {
  const { attempt, utterance } = segmentRenderer;
  if (attempt.error === null || !isWorthAnotherTry(attempt.error)) return false;
  const end = segmentRenderer.findKnownEnd();
  if (end === null) return false;
  const spokenEnd = end.spokenEnd ?? attempt.segment.start;
  const rest = remainderOf(utterance, attempt.segment, spokenEnd);
  if (rest === null) {
    segmentRenderer.endWhole();
    return true;
  }
  if (!utterance.input.segments.mayRecover(attempt.segment, spokenEnd)) return false;
  segmentRenderer.endAt(withEnding(end, utterance, rest.start));
  utterance.input.segments.recover(attempt.segment, rest, nowMs);
  return true;
}

/** What only ends an input of a dialogue is not asked for again: its times go with what is kept, or nobody gets them. */
function withEnding(end: KnownEnd, { transcript: { characters } }: Utterance, spokenEnd: number): KnownEnd {
  if (end.spokenEnd === null || end.ticks === null || spokenEnd === end.spokenEnd) return end;
  const last = characters.findLast((time) => time.end <= spokenEnd);
  return { spokenEnd, ticks: Math.max(end.ticks, last?.endTicks ?? 0) };
}

/** All that is kept of it was rendered: warns listeners where the rest goes on, and why. Nothing where no text is left. */
export function emitRecovered(
  { utterance, segment, attempt }: SegmentRenderer,
  at: { readonly deps: SessionDeps; readonly writer: EventWriter; readonly atTicks: number },
): void {
  if (attempt.error === null || segment.end === attempt.segment.end) return;
  const { deps, writer, atTicks } = at;
  const { code, message } = attempt.error;
  deps.counters.speechRecovered += 1;
  deps.log.warn({ utterance: utterance.id, code, detail: message }, "Speech broke off and was recovered");
  writeRecovered(writer, { utterance, cause: attempt.error, spokenEnd: segment.end, atTicks });
}
