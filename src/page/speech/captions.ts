/** The cues of the session, and the one that belongs to what is heard. */
import type { CueEvent, InterruptedEvent } from "../../protocol/events.ts";

/** Cues that are kept: minutes of them, ahead and behind. */
const MAX_CUES = 256;
/** A cue stays through a short pause, so that captions do not flicker. */
const LINGER_MS = 300;

export class Captions {
  /** In the order of their times. */
  #cues: CueEvent[] = [];

  add(cue: CueEvent): void {
    this.#cues = this.#cues.filter((other) => other.start_ms !== cue.start_ms);
    let place = this.#cues.length;
    while (place > 0 && (this.#cues[place - 1]?.start_ms ?? 0) > cue.start_ms) place -= 1;
    this.#cues.splice(place, 0, cue);
    if (this.#cues.length > MAX_CUES) this.#cues.shift();
  }

  /** What was cut off will not be heard. */
  cut({ utterance_id, at_ms, next_ms }: InterruptedEvent): void {
    const cutMs = next_ms === null ? Number.NEGATIVE_INFINITY : at_ms;
    this.#cues = this.#cues
      .filter((cue) => cue.utterance_id !== utterance_id || cue.start_ms < cutMs)
      .map((cue) =>
        cue.utterance_id === utterance_id ? { ...cue, end_ms: Math.min(cue.end_ms, cutMs) } : cue,
      );
  }

  /** The lines to show at a position of the timeline; none in a pause. */
  at(positionMs: number): readonly string[] {
    const cue = this.#cues.findLast((other) => other.start_ms <= positionMs);
    if (cue === undefined || positionMs >= cue.end_ms + LINGER_MS) return [];
    return cue.lines.map((line) => line.text);
  }

  /** A new timeline begins. */
  clear(): void {
    this.#cues = [];
  }
}
