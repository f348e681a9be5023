/** Which interrupted utterance can go on, and for how much longer the gateway keeps its audio. */
import type { Event } from "../../protocol/events.ts";

export class Resumable {
  readonly #keptMs: () => number;
  #latest: { readonly id: string; readonly untilMs: number } | null = null;

  /** `keptMs`: how long the audio is kept (`limits.resume_ms`). */
  constructor(keptMs: () => number) {
    this.#keptMs = keptMs;
  }

  /** `nowMs` as in `idAt`. */
  take(event: Event, nowMs: number): void {
    if (event.type === "interrupted" && event.resumable) {
      this.#latest = { id: event.utterance_id, untilMs: nowMs + this.#keptMs() };
    }
    if (event.type === "utterance.resumed" && event.utterance_id === this.#latest?.id) this.#latest = null;
  }

  /** The utterance that `resume` would go on with now; null = none. */
  idAt(nowMs: number): string | null {
    return this.#latest !== null && nowMs < this.#latest.untilMs ? this.#latest.id : null;
  }

  /** It was refused, or another session has begun. */
  clear(): void {
    this.#latest = null;
  }
}
