/** What a listener really heard of an utterance when it was cut: text, offset, milliseconds, and how we know. */
import type { Heard } from "../protocol/events.ts";
import { msOfTicks, TICKS_PER_MS } from "../timing/ticks.ts";
import { type ComingAudio, spanAt, spokenEndAt, type UntimedSpeech } from "./heard-share.ts";
import type { Utterance } from "./playback/utterance.ts";

/** A character of the spoken text: where it ends in the text, and on the timeline. */
interface HeardCharacter {
  readonly end: number;
  readonly endTicks: number;
}

/** What says how much of an utterance was heard at a time. */
interface HeardFacts {
  /** Client's text. */
  readonly text: string;
  readonly characters: readonly HeardCharacter[];
  /** Client's offset of an end in the spoken text. */
  readonly clientEnd: (spoken: number) => number;
  /** The last place up to one in the spoken text where a word may begin. */
  readonly placeUpTo: (spoken: number) => number;
  readonly startTicks: number | null;
  /** Heard before it was cut and resumed. */
  readonly heardBeforeTicks: number;
  /** Offset in the spoken text up to which that is. */
  readonly resumedStart: number;
  /** Used to estimate where nothing was timed. */
  readonly untimed: UntimedSpeech;
}

/** `coming`: what has come of its segment that is being rendered; null: nothing more is to come. */
export function heardFactsOf(utterance: Utterance, coming: ComingAudio | null): HeardFacts {
  return {
    text: utterance.text,
    characters: utterance.transcript.characters,
    clientEnd: (spoken) => utterance.spoken.clientHeardEnd(spoken),
    startTicks: utterance.startTicks,
    placeUpTo: (spoken) => utterance.restartPlaces.placeUpTo(spoken),
    heardBeforeTicks: utterance.resumption?.heardTicks ?? 0,
    resumedStart: utterance.resumption?.spokenStart ?? 0,
    untimed: { spoken: utterance.spoken.spoken, spans: utterance.transcript.segments, coming },
  };
}

/** Where a listener was when the cut came, and how that is known. */
export interface HeardAt {
  readonly ticks: number;
  readonly source: Heard["source"];
  readonly boundMs: number;
}

/** So long after a character the next one has no times yet, rather than that nothing is said. */
const LONGEST_PAUSE_TICKS = 1000 * TICKS_PER_MS;

export type Receipt = Heard & { readonly unheardText: string };

/** The end of the last word that was over when the cut came: one of which a part was heard is not, and is said again. */
export function receiptOf(facts: HeardFacts, place: HeardAt): Receipt {
  const startTicks = facts.startTicks ?? place.ticks;
  const heardTicks = Math.max(0, place.ticks - startTicks);
  const end = facts.clientEnd(heardToWord(facts, place.ticks));
  return {
    text: facts.text.slice(0, end),
    end,
    ms: msOfTicks(facts.heardBeforeTicks + heardTicks),
    source: place.source,
    bound_ms: place.boundMs,
    unheardText: facts.text.slice(end),
  };
}

/** Where in the spoken text that is. Of one that waits to go on: what was heard before it was cut. */
export function heardToWord(facts: HeardFacts, atTicks: number): number {
  const heardTo = facts.startTicks === null ? 0 : facts.placeUpTo(heardToCharacter(facts, atTicks));
  return Math.max(facts.resumedStart, heardTo);
}

/**
 * The end of the last character that was over. By the times of the text; behind the last one in the segment that is heard,
 * by the share of its audio.
 */
function heardToCharacter({ characters, untimed }: HeardFacts, atTicks: number): number {
  const timedEnd = timedHeardEnd(characters, atTicks);
  const { spans } = untimed;
  const span = spanAt(spans, atTicks);
  if (span === undefined) return timedEnd;
  const last = characters.at(-1);
  if (last === undefined || last.end <= span.start) {
    return Math.max(timedEnd, spokenEndAt(untimed, atTicks));
  }
  if (last.end >= span.end || atTicks - last.endTicks < LONGEST_PAUSE_TICKS) return timedEnd;
  const left = { ...span, start: last.end, startTicks: last.endTicks };
  return spokenEndAt({ ...untimed, spans: [...spans.filter((other) => other !== span), left] }, atTicks);
}

function timedHeardEnd(characters: readonly HeardCharacter[], atTicks: number): number {
  let low = 0;
  let high = characters.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((characters[middle]?.endTicks ?? 0) <= atTicks) low = middle + 1;
    else high = middle;
  }
  return low === 0 ? 0 : (characters[low - 1]?.end ?? 0);
}
