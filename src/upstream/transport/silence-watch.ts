/**
 * Notices when nothing has come for too long. One timer, set again only when it runs out: a sign of life costs a reading of
 * the clock.
 */
import type { Clock, Timer } from "../../kit/clock.ts";

export interface SilenceWatchOptions {
  readonly clock: Clock;
  /** Longest silence now, ms; null: silence is all right now, and `goOn` says when it no longer is. */
  readonly limitMs: () => number | null;
  /** Called once for each time that it was set going. */
  readonly onSilent: (limitMs: number) => void;
}

export class SilenceWatch {
  readonly #options: SilenceWatchOptions;
  #timer: Timer | null = null;
  #lastSignMs = 0;

  constructor(options: SilenceWatchOptions) {
    this.#options = options;
  }

  /** From now on; where it is going already, this is a sign of life. */
  goOn(): void {
    this.sign();
    if (this.#timer === null) this.#arm();
  }

  sign(): void {
    this.#lastSignMs = this.#options.clock.nowMs();
  }

  /** Idempotent. */
  stop(): void {
    this.#timer?.cancel();
    this.#timer = null;
  }

  #arm(): void {
    const { clock, limitMs } = this.#options;
    const limit = limitMs();
    if (limit !== null) this.#timer = clock.at(this.#lastSignMs + limit, () => this.#onTimer());
  }

  #onTimer(): void {
    this.#timer = null;
    const { clock, limitMs, onSilent } = this.#options;
    const limit = limitMs();
    if (limit === null) return;
    if (clock.nowMs() < this.#lastSignMs + limit) this.#arm();
    else onSilent(limit);
  }
}
