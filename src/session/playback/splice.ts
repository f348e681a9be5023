/** Where two segments of an utterance meet: how the last one ended, and how long a pause is missing before the next. */

import type { SpliceTuning } from "../ports.ts";
import { TICKS_PER_MS } from "./playhead.ts";
import { splicePauseMs } from "./splice-pause.ts";
import type { Utterance } from "./utterance.ts";

/** The silence that a response still begins with when it was trimmed. */
const LEAD_TICKS = 20 * TICKS_PER_MS;
/** A shorter pause is not worth a slice of its own. */
const MIN_PAUSE_TICKS = 20 * TICKS_PER_MS;

interface End {
  readonly utterance: Utterance;
  /** The punctuation at its end asks for the pause. */
  readonly text: string;
  /** Silence that the upstream has left of its own. */
  readonly silenceTicks: number;
}

export class Splice {
  readonly #tuning: SpliceTuning;
  #end: End | null = null;

  constructor(tuning: SpliceTuning) {
    this.#tuning = tuning;
  }

  /** A segment was spoken to its end. */
  note(end: End): void {
    this.#end = end;
  }

  /** What follows does not go on with it. */
  forget(): void {
    this.#end = null;
  }

  /** The silence to be pushed before the next segment of `utterance`, ticks; 0: none. Asked once a splice. */
  takePause(utterance: Utterance): number {
    const end = this.#end;
    this.#end = null;
    if (end?.utterance !== utterance) return 0;
    const wantedTicks = splicePauseMs(end.text, this.#tuning) * TICKS_PER_MS;
    const missing = wantedTicks - end.silenceTicks - LEAD_TICKS;
    return missing < MIN_PAUSE_TICKS ? 0 : missing;
  }
}
