/** What the player of a segment leaves to those behind it. */
import type { VoicePace } from "../../timing/estimate/open-text.ts";

/** A dialogue's voices are one. */
const MAX_VOICES = 32;

export class CarryOver {
  /** Memory that the next one can be made with: what was taken of the player before is no longer good then. */
  store: Uint8Array | null = null;
  readonly #paces = new Map<string, VoicePace>();

  /** How fast a voice was heard to speak; null: it was not. */
  paceOf(voiceIds: readonly string[]): VoicePace | null {
    return this.#paces.get(voiceIds.join()) ?? null;
  }

  /** The voice heard longest ago makes room. */
  notePace(voiceIds: readonly string[], pace: VoicePace): void {
    const voice = voiceIds.join();
    this.#paces.delete(voice);
    this.#paces.set(voice, pace);
    const [oldest] = this.#paces.keys();
    if (this.#paces.size > MAX_VOICES && oldest !== undefined) this.#paces.delete(oldest);
  }
}
