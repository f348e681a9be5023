/** Up to where a response that broke off is kept: the last word whose time is known, so that no word is lost and none is said twice. */
import { TICKS_PER_MS } from "../../timing/ticks.ts";
import type { RestartPlaces } from "../resume/restart-places.ts";
import type { SpokenWord } from "./transcript.ts";

/** Times are rounded. */
const TOLERANCE_TICKS = 10 * TICKS_PER_MS;
/** Times may come a little behind their audio: so much sound that has no times yet, about a word, may be said again. */
const UNTIMED_TAIL_TICKS = 300 * TICKS_PER_MS;

interface BrokenResponse {
  /** Words of the response, rising; of those heard long ago the last one at least. */
  readonly words: readonly SpokenWord[];
  /** It may not end inside text that stands for other text of the client. */
  readonly places: Pick<RestartPlaces, "placeUpTo">;
  /** Whether any of its text behind an offset in the spoken text is still to be said. */
  readonly hasTextBehind: (spokenEnd: number) => boolean;
  /** End of the audio rendered, and up to where a word may end to be here. */
  readonly writeTicks: number;
  readonly receivedTicks: number;
  /** End of the last sound that has come, rendered or not. */
  readonly soundTicks: number;
  /** Up to where its characters have times; null: none has. */
  readonly timedTicks: number | null;
}

export interface KnownEnd {
  /** Offset in the spoken text; null: at the beginning of the response's own. */
  readonly spokenEnd: number | null;
  /** Where on the timeline; null: at its beginning. */
  readonly ticks: number | null;
}

/** null where more was rendered than that and a part of the word that follows. */
export function knownEndOf(response: BrokenResponse): KnownEnd | null {
  const { words, places, writeTicks, soundTicks, timedTicks } = response;
  const here = words.filter(({ endTicks }) => endTicks <= response.receivedTicks);
  const index = here.findLastIndex(
    ({ end, timing }) => timing !== "estimated" && places.placeUpTo(end) === end,
  );
  const last = here[index];
  const next = here[index + 1];
  const end = { spokenEnd: last?.end ?? null, ticks: last?.endTicks ?? null };
  if (next !== undefined) return writeTicks < next.endTicks ? end : null;
  if (last !== undefined && !response.hasTextBehind(last.end)) return end;
  const knownTicks = Math.max(last?.endTicks ?? 0, timedTicks ?? 0) + TOLERANCE_TICKS;
  const lateTicks = timedTicks === null ? 0 : UNTIMED_TAIL_TICKS;
  if (writeTicks <= knownTicks || Math.min(writeTicks, soundTicks) <= knownTicks + lateTicks) return end;
  return null;
}
