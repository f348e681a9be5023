/** What a `SegmentRenderer` leaves to those of later segments. */
import type { SpeakingRate } from "../../timing/timing-estimator.ts";

/** The voices of a dialogue count as one. */
const MAX_VOICES = 32;

export class CarryOver {
  /** Memory that the next one can be made with: what was taken of the one before is no longer good then. */
  store: Uint8Array | null = null;
  /** Voices whose last response had no times. */
  readonly #untimed = new Set<string>();
  readonly #rates = new Map<string, SpeakingRate>();

  isUntimed(voiceIds: readonly string[]): boolean {
    return this.#untimed.has(voiceIds.join());
  }

  /** The voice heard longest ago makes room. */
  noteTimes(voiceIds: readonly string[], hasTimes: boolean): void {
    const voice = voiceIds.join();
    this.#untimed.delete(voice);
    if (!hasTimes) this.#untimed.add(voice);
    const [oldest] = this.#untimed;
    if (this.#untimed.size > MAX_VOICES && oldest !== undefined) this.#untimed.delete(oldest);
  }

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
