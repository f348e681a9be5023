/**
 * Where a response whose times are guesses is whole if it breaks off: in a pause of its audio whose mark in the text is
 * known.
 *
 *   asked    |Alpha bravo, charlie delta. Echo foxtrot|
 *   came     |##### #####  ####### #####   #### ##|       broke off
 *   pushed   |##### #|
 *   spoken   |Alpha bravo, charlie delta|. Echo foxtrot|   kept up to a pause; the rest is another segment
 */
import type { MarkedPause } from "../../timing/estimate/open-text.ts";
import type { FeedTiming } from "../events/feed-timing.ts";
import type { SegmentEvents } from "../events/segment-events.ts";
import { TICKS_PER_MS } from "./playhead.ts";
import type { Response, WholeEnd } from "./whole-words.ts";

/** Silence left behind the last sound: consonants end below the level of silence. */
const TAIL_TICKS = 60 * TICKS_PER_MS;
/**
 * How sure it has to be which mark a pause stands for (`MarkedPause.sureness`): a wrong one is text said twice, or lost.
 * And what is sure enough: of such pauses the last one is taken, with which the least is said anew.
 */
const MIN_SURENESS = 2;
const SURE = 4;

/**
 * Up to where a response that broke off is whole, behind its last whole word, or where that is not known, a pause; null:
 * neither is known. All that has come is read.
 */
export function findWholeEnd(
  events: Pick<SegmentEvents, "words" | "ticksAt">,
  timing: FeedTiming | null,
  response: Response,
): WholeEnd | null {
  const end = events.words.endOf(response);
  // Its own beginning is where it goes on without a doubt, but again and again where it never comes further.
  if (timing === null || (end !== null && end.spokenEnd !== null)) return end;
  return findPauseEnd(events, timing, response) ?? end;
}

/** The surest pause that is not pushed, with the text before it estimated; null: none is sure. */
function findPauseEnd(
  events: Pick<SegmentEvents, "ticksAt">,
  timing: FeedTiming,
  { places, writeTicks }: Response,
): WholeEnd | null {
  let best: { readonly sureness: number; readonly pause: MarkedPause | null } = {
    sureness: MIN_SURENESS,
    pause: null,
  };
  for (const pause of timing.markedPauses()) {
    if (events.ticksAt(pause.endSeconds) < writeTicks || places.before(pause.start) !== pause.start) continue;
    const sureness = Math.min(SURE, pause.sureness());
    if (sureness >= best.sureness) best = { sureness, pause };
  }
  const { pause } = best;
  if (pause === null) return null;
  timing.estimateTo(pause);
  const [ticks, endTicks] = [events.ticksAt(pause.startSeconds), events.ticksAt(pause.endSeconds)];
  return { spokenEnd: pause.start, ticks, tailTicks: Math.min(TAIL_TICKS, endTicks - ticks) };
}
