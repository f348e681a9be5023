/** The upstream of an utterance broke off, and the rest of it is said again. */
import type { WarningEvent } from "../protocol/events.ts";

/** Words and characters of the utterance's text from `start` on are void: they come again. */
export interface Recovered {
  readonly utterance_id: string;
  /** Offset in its text, in the unit that the connection asked for. */
  readonly start: number;
}

/** What a `warning` makes void; null for one that makes nothing void (docs/protocol.md, "When the upstream breaks off"). */
export function recovered({ code, utterance_id, start }: WarningEvent): Recovered | null {
  if (code !== "speech_recovered" || utterance_id === undefined || start === undefined) return null;
  return { utterance_id, start };
}
