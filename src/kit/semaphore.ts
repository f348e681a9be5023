/** A bound on what goes on at the same time, and a bounded line of those that wait for it. */
import { GatewayError } from "../errors.ts";

/** Gives a permit back. Idempotent. */
export type Release = () => void;

export interface SemaphoreOptions {
  /** Permits. */
  readonly limit: number;
  /** Who may wait in `acquire`; default 0. */
  readonly maxWaiting?: number;
  /** A permit came back and nobody waited for it. */
  readonly onFree?: () => void;
}

export class Semaphore {
  readonly #limit: number;
  readonly #maxWaiting: number;
  readonly #onFree: (() => void) | undefined;
  /** Those that had a permit before: they come first and are not refused. The owner bounds how many it lets in. */
  readonly #returning: (() => void)[] = [];
  readonly #waiting: (() => void)[] = [];
  #held = 0;

  constructor({ limit, maxWaiting = 0, onFree }: SemaphoreOptions) {
    this.#limit = limit;
    this.#maxWaiting = maxWaiting;
    this.#onFree = onFree;
  }

  /** Permits that are out. */
  get held(): number {
    return this.#held;
  }

  get waiting(): number {
    return this.#returning.length + this.#waiting.length;
  }

  /** Whether `acquire` would refuse. */
  get isFull(): boolean {
    return this.#held >= this.#limit && this.#waiting.length >= this.#maxWaiting;
  }

  /** A permit, or null where all are out. */
  tryAcquire(): Release | null {
    if (this.#held >= this.#limit) return null;
    this.#held += 1;
    return this.#release();
  }

  /**
   * Waits for a permit. `isReturning`: had one before and gave it back for a while; goes in front of those that never had
   * one, and is not refused. Rejects with GatewayError `queue_full` where too many wait, and with the signal's reason where
   * it is aborted while waiting.
   */
  async acquire(signal: AbortSignal, { isReturning = false } = {}): Promise<Release> {
    signal.throwIfAborted();
    const permit = this.tryAcquire();
    if (permit !== null) return permit;
    if (this.isFull && !isReturning) {
      throw new GatewayError("queue_full", `Cannot begin: ${this.#maxWaiting} requests wait, expected fewer`);
    }
    await this.#turn(isReturning ? this.#returning : this.#waiting, signal);
    return this.#release();
  }

  #release(): Release {
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      // The permit goes to the next one without being free in between.
      const next = this.#returning.shift() ?? this.#waiting.shift();
      if (next !== undefined) return next();
      this.#held -= 1;
      this.#onFree?.();
    };
  }

  #turn(line: (() => void)[], signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const onPermit = (): void => {
        signal.removeEventListener("abort", onAbort);
        resolve();
      };
      const onAbort = (): void => {
        line.splice(line.indexOf(onPermit), 1);
        reject(signal.reason);
      };
      line.push(onPermit);
      signal.addEventListener("abort", onAbort, { once: true });
    });
  }
}
