/** What a listener really heard of an utterance when it was cut: text, offset, milliseconds, and how we know. */
import type { InterruptedEvent } from "../protocol/vocabulary.ts";
import { msOfTicks } from "../timing/ticks.ts";

/** One timed character run of an utterance: offsets into its text, end position on the timeline. */
export interface HeardCharacter {
  readonly end: number;
  readonly endTicks: number;
}

export interface Cut {
  readonly text: string;
  readonly characters: readonly HeardCharacter[];
  readonly startTicks: number | null;
  /** End of the utterance's audio so far; used to estimate where nothing was timed. */
  readonly edgeTicks: number;
  /** Where the listener was. */
  readonly atTicks: number;
  readonly source: "ack" | "estimate";
  readonly boundMs: number;
}

export type Receipt = InterruptedEvent["heard"] & { readonly unheardText: string };

/** The end of the last character that was over when the cut came. */
export function receiptOf(cut: Cut): Receipt {
  const startTicks = cut.startTicks ?? cut.atTicks;
  const heardTicks = Math.max(0, cut.atTicks - startTicks);
  const end = cut.characters.length > 0 ? heardEnd(cut) : proportionalEnd(cut, heardTicks);
  return {
    text: cut.text.slice(0, end),
    end,
    ms: msOfTicks(heardTicks),
    source: cut.source,
    bound_ms: cut.boundMs,
    unheardText: cut.text.slice(end),
  };
}

function heardEnd(cut: Cut): number {
  let low = 0;
  let high = cut.characters.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((cut.characters[middle]?.endTicks ?? 0) <= cut.atTicks) low = middle + 1;
    else high = middle;
  }
  return low === 0 ? 0 : (cut.characters[low - 1]?.end ?? 0);
}

/** Without timing: as much of the text as of the audio, cut before a broken surrogate pair. */
function proportionalEnd(cut: Cut, heardTicks: number): number {
  const totalTicks = cut.edgeTicks - (cut.startTicks ?? cut.edgeTicks);
  if (totalTicks <= 0) return 0;
  const end = Math.min(cut.text.length, Math.floor((heardTicks / totalTicks) * cut.text.length));
  const code = cut.text.charCodeAt(end);
  return code >= 0xdc00 && code <= 0xdfff ? end - 1 : end;
}
