/** Who may make a sound now: a few at once, some more wait in line, the rest are refused. */
import { Semaphore } from "../../kit/semaphore.ts";

/** A request's right to be served, from its admission until `leave`. */
export interface Place {
  /** Lets another one work while this one waits for its client. */
  pause(): void;
  /** Waits for its turn; after `leave` it resolves at once. One call at a time. */
  resume(): Promise<void>;
  /** Idempotent. */
  leave(): void;
}

interface QueueLimits {
  /** Sounds made at once. */
  readonly making: number;
  /** Requests that have not begun. */
  readonly waiting: number;
  /** Requests in all, those that wait for their clients included. */
  readonly open: number;
}

export class SoundQueue {
  readonly #limits: QueueLimits;
  readonly #turns: Semaphore;
  #open = 0;

  constructor(limits: QueueLimits) {
    this.#limits = limits;
    this.#turns = new Semaphore({ limit: limits.making, maxWaiting: limits.waiting });
  }

  /** Requests that hold a place, whatever they do. */
  get open(): number {
    return this.#open;
  }

  get making(): number {
    return this.#turns.held;
  }

  /** Undefined where too many are there already. Call `resume` before working. */
  enter(): Place | undefined {
    if (this.#turns.isFull || this.#open >= this.#limits.open) return undefined;
    this.#open += 1;
    return new QueuedPlace(this.#turns, () => {
      this.#open -= 1;
    });
  }
}

class QueuedPlace implements Place {
  readonly #turns: Semaphore;
  readonly #onLeave: () => void;
  readonly #leaving = new AbortController();
  #free: (() => void) | null = null;
  #hasBegun = false;

  constructor(turns: Semaphore, onLeave: () => void) {
    this.#turns = turns;
    this.#onLeave = onLeave;
  }

  pause(): void {
    this.#free?.();
    this.#free = null;
  }

  async resume(): Promise<void> {
    const { signal } = this.#leaving;
    if (this.#free !== null || signal.aborted) return;
    try {
      // Who has begun goes first: its client holds a half-heard sound.
      this.#free = await this.#turns.acquire(signal, { isReturning: this.#hasBegun });
    } catch (thrown) {
      if (signal.aborted) return;
      throw thrown;
    }
    this.#hasBegun = true;
    // It may have left between its turn and now.
    if (signal.aborted) this.pause();
  }

  leave(): void {
    if (this.#leaving.signal.aborted) return;
    this.#leaving.abort();
    this.pause();
    this.#onLeave();
  }
}
