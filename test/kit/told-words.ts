/** The words that a client has been told of one utterance, as it holds them at its end. */
import type { Event, Word } from "../../src/protocol/events.ts";

export interface ToldWords {
  readonly words: readonly Word[];
  /** How often it went on elsewhere. */
  readonly recoveries: number;
}

/** A speech that was recovered takes back what was told from there on. */
export function toldWords(events: readonly Event[]): ToldWords {
  let words: Word[] = [];
  let recoveries = 0;
  for (const event of events) {
    if (event.type === "words") words.push(...event.words);
    if (event.type !== "warning" || event.code !== "speech_recovered") continue;
    recoveries += 1;
    const start = event.start ?? Number.POSITIVE_INFINITY;
    words = words.filter((word) => word.start < start);
  }
  return { words, recoveries };
}
