/**
 * A response that broke off after some of it was taken: what of it is whole is spoken, and the rest of its text is asked
 * for anew, so that no word is lost and none is said twice.
 *
 *   asked    |the quick brown fox jumps|
 *   came     |the quick brown f|            broke off
 *   spoken   |the quick brown|fox jumps|    kept up to the last whole word; the rest is another segment
 */

import type { EventWriter } from "./event-writer.ts";
import type { SessionDeps } from "./ports.ts";
import { restOf } from "./rest-text.ts";
import type { SegmentFeed } from "./segment-feed.ts";
import { mayPass } from "./segment-run.ts";
import type { Utterance } from "./utterance.ts";
import { writeTakenUp } from "./utterance-events.ts";
import type { WholeEnd } from "./whole-words.ts";

/**
 * Makes an end of the feed whose run failed. False where it can't go on: the failure would come again, nobody knows what
 * was said (no timing, or guesses alone and no pause that is not pushed), or it broke off from the same place too often. Throws what breaks the audio.
 */
export function takeUp(feed: SegmentFeed, nowMs: number): boolean {
  const { run, utterance } = feed;
  if (run.error === null || !mayPass(run.error)) return false;
  const end = feed.findWholeEnd();
  if (end === null) return false;
  const spokenEnd = end.spokenEnd ?? run.segment.start;
  const rest = restOf(utterance, run.segment, spokenEnd);
  if (rest === null) {
    feed.endWhole();
    return true;
  }
  if (!utterance.segments.mayTakeUp(run.segment, spokenEnd)) return false;
  feed.endAt(withEnding(end, utterance, rest.start));
  utterance.segments.takeUp(run.segment, rest, nowMs);
  return true;
}

/** What only ends an input of a dialogue is not asked for anew: it goes with what is kept, or nobody tells it. */
function withEnding(end: WholeEnd, { characters }: Utterance, spokenEnd: number): WholeEnd {
  if (end.spokenEnd === null || end.ticks === null || spokenEnd === end.spokenEnd) return end;
  const last = characters.findLast((time) => time.end <= spokenEnd);
  return { spokenEnd, ticks: Math.max(end.ticks, last?.endTicks ?? 0) };
}

/** All that is kept of it was pushed: tells where the rest goes on, and why. Nothing where no text is left to come. */
export function tellTakenUp(
  { utterance, segment, run }: SegmentFeed,
  at: { readonly deps: SessionDeps; readonly writer: EventWriter; readonly atTicks: number },
): void {
  if (run.error === null || segment.end === run.segment.end) return;
  const { deps, writer, atTicks } = at;
  const { code, message } = run.error;
  deps.counters.speechTakenUp += 1;
  deps.log.warn({ utterance: utterance.id, code, detail: message }, "Speech broke off and was taken up");
  writeTakenUp(writer, { utterance, cause: run.error, spokenEnd: segment.end, atTicks });
}
