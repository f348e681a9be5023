/** Fencing numbers that grow, whatever becomes of the store and of the machine's clock. */
import type { Clock } from "../../kit/clock.ts";

/**
 * The wall clock is read once; from then on the monotonic clock counts, so that a clock that jumps changes nothing. The
 * store's own revisions would not do: a store in memory counts from 1 again when its servers were all down.
 */
export class Epochs {
  readonly #clock: Clock;
  readonly #originMs: number;
  #newest = 0;

  constructor(clock: Clock, wallMs: number = Date.now()) {
    this.#clock = clock;
    this.#originMs = wallMs - clock.nowMs();
  }

  /** An entry with this epoch was read: what comes next is newer. */
  see(epoch: number): void {
    this.#newest = Math.max(this.#newest, epoch);
  }

  next(): number {
    const nowUs = Math.floor((this.#originMs + this.#clock.nowMs()) * 1000);
    this.#newest = Math.max(this.#newest + 1, nowUs);
    return this.#newest;
  }
}
