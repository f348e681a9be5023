/** What a listener really heard of an utterance when it was cut: text, offset, milliseconds, and how we know. */
import type { Heard } from "../protocol/events.ts";
import { msOfTicks } from "../timing/ticks.ts";

/** A character of the spoken text: its end, and when it was over. */
interface HeardCharacter {
  readonly end: number;
  readonly endTicks: number;
}

export interface Cut {
  /** Client's text. */
  readonly text: string;
  readonly characters: readonly HeardCharacter[];
  /** Client's offset of an end in the spoken text. */
  readonly clientEnd: (spoken: number) => number;
  readonly startTicks: number | null;
  /** Heard before it was cut and resumed. */
  readonly heardBeforeTicks: number;
  /** End of the utterance's audio so far; used to estimate where nothing was timed. */
  readonly edgeTicks: number;
}

/** Where a listener was when the cut came, and how that is known. */
export interface HeardPlace {
  readonly ticks: number;
  readonly source: Heard["source"];
  readonly boundMs: number;
}

export type Receipt = Heard & { readonly unheardText: string };

/** The end of the last character that was over when the cut came. */
export function receiptOf(cut: Cut, place: HeardPlace): Receipt {
  const startTicks = cut.startTicks ?? place.ticks;
  const heardTicks = Math.max(0, place.ticks - startTicks);
  const end =
    cut.startTicks === null
      ? // It waits to go on: what was heard before it was cut.
        cut.clientEnd(cut.characters.at(-1)?.end ?? 0)
      : cut.characters.length > 0
        ? cut.clientEnd(heardEnd(cut.characters, place.ticks))
        : proportionalEnd(cut, heardTicks);
  return {
    text: cut.text.slice(0, end),
    end,
    ms: msOfTicks(cut.heardBeforeTicks + heardTicks),
    source: place.source,
    bound_ms: place.boundMs,
    unheardText: cut.text.slice(end),
  };
}

function heardEnd(characters: readonly HeardCharacter[], atTicks: number): number {
  let low = 0;
  let high = characters.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((characters[middle]?.endTicks ?? 0) <= atTicks) low = middle + 1;
    else high = middle;
  }
  return low === 0 ? 0 : (characters[low - 1]?.end ?? 0);
}

/** Without timing: as much of the text as of the audio, cut before a broken surrogate pair. */
function proportionalEnd(cut: Cut, heardTicks: number): number {
  const totalTicks = cut.edgeTicks - (cut.startTicks ?? cut.edgeTicks);
  if (totalTicks <= 0) return 0;
  const end = Math.min(cut.text.length, Math.floor((heardTicks / totalTicks) * cut.text.length));
  const code = cut.text.charCodeAt(end);
  return code >= 0xdc00 && code <= 0xdfff ? end - 1 : end;
}
