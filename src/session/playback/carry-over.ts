/** What the player of a segment leaves to those behind it. */
import type { SpeakingRate } from "../../timing/timing-estimator.ts";

/** A dialogue's voices are one. */
const MAX_VOICES = 32;

export class CarryOver {
  /** Memory that the next one can be made with: what was taken of the player before is no longer good then. */
  store: Uint8Array | null = null;
  readonly #rates = new Map<string, SpeakingRate>();

  /** How fast a voice was heard to speak; null: it was not. */
  rateOf(voiceIds: readonly string[]): SpeakingRate | null {
    return this.#rates.get(voiceIds.join()) ?? null;
  }

  /** The voice heard longest ago makes room. */
  noteRate(voiceIds: readonly string[], rate: SpeakingRate): void {
    const voice = voiceIds.join();
    this.#rates.delete(voice);
    this.#rates.set(voice, rate);
    const [oldest] = this.#rates.keys();
    if (this.#rates.size > MAX_VOICES && oldest !== undefined) this.#rates.delete(oldest);
  }
}
