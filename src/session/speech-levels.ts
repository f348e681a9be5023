/**
 * The gains of one utterance: one for its voice, and one for each stand-in that goes on in its place, as that is louder or
 * softer.
 */
import type { Leveller } from "../audio/loudness/leveller.ts";
import type { UtteranceLevel } from "./voice-loudness.ts";

export class SpeechLevels {
  /** null: its format is not levelled. */
  readonly #levelOf: (standIn: string | null) => UtteranceLevel | null;
  /** By stand-in; null: the voice itself. */
  readonly #levels = new Map<string | null, UtteranceLevel | null>();

  constructor(levelOf: (standIn: string | null) => UtteranceLevel | null) {
    this.#levelOf = levelOf;
    this.levellerOf(null);
  }

  /** null: its audio stays as it comes. */
  levellerOf(standIn: string | null): Leveller | null {
    const known = this.#levels.get(standIn);
    if (known !== undefined) return known?.leveller ?? null;
    const level = this.#levelOf(standIn);
    this.#levels.set(standIn, level);
    return level?.leveller ?? null;
  }

  /** The utterance is over: what was measured of it is remembered. */
  learn(): void {
    for (const level of this.#levels.values()) level?.learn();
  }
}
