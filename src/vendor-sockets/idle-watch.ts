/** Notices who has said nothing for too long, with one timer for all contexts of a socket. */
import type { Clock, Timer } from "../kit/clock.ts";

export interface Idler {
  /** When it said something last, clock ms. */
  lastMs: number;
}

export interface IdleWatchOptions<T extends Idler> {
  readonly clock: Clock;
  readonly idleMs: number;
  /** Those that are watched now. */
  readonly watched: () => Iterable<T>;
  /** Called once for each time that it is over; say in `lastMs` when to look again. */
  readonly onIdle: (idler: T) => void;
}

export class IdleWatch<T extends Idler> {
  readonly #options: IdleWatchOptions<T>;
  #timer: Timer | null = null;
  #isClosed = false;

  constructor(options: IdleWatchOptions<T>) {
    this.#options = options;
    this.look();
  }

  /** Ends those that are over and waits for the next: call it when there is somebody new to watch. */
  look(): void {
    const { clock, idleMs, watched, onIdle } = this.#options;
    const nowMs = clock.nowMs();
    for (const idler of [...watched()]) {
      if (!this.#isClosed && nowMs - idler.lastMs >= idleMs) onIdle(idler);
    }
    this.#timer?.cancel();
    this.#timer = null;
    if (this.#isClosed) return;
    let next = Number.POSITIVE_INFINITY;
    for (const { lastMs } of watched()) next = Math.min(next, lastMs + idleMs);
    if (!Number.isFinite(next)) return;
    // Never at once: who stays idle after `onIdle` would turn this into a loop.
    this.#timer = clock.at(Math.max(next, nowMs + 1), () => this.look());
  }

  /** Idempotent. */
  close(): void {
    this.#isClosed = true;
    this.#timer?.cancel();
    this.#timer = null;
  }
}
