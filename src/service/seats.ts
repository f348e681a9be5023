/** Who may work at the same time, and who waits: both bounded. */
import { GatewayError } from "../errors.ts";

export class Seats {
  readonly #limit: number;
  readonly #maxWaiting: number;
  /** Those that had a seat before stand in front; their number is bounded by who let them in. */
  readonly #returning: (() => void)[] = [];
  readonly #waiting: (() => void)[] = [];
  #taken = 0;

  constructor(options: { readonly limit: number; readonly maxWaiting: number }) {
    this.#limit = options.limit;
    this.#maxWaiting = options.maxWaiting;
  }

  /** Those that are taken. */
  get taken(): number {
    return this.#taken;
  }

  /** Those who wait for one. */
  get waiting(): number {
    return this.#returning.length + this.#waiting.length;
  }

  /** Whether one who comes now is turned away. */
  get isFull(): boolean {
    return this.#taken >= this.#limit && this.#waiting.length >= this.#maxWaiting;
  }

  /**
   * Resolves with what gives the seat back (idempotent). `isReturning`: had one before and left it for a while; goes in
   * front of those that never had one, and is not turned away. Rejects with GatewayError `queue_full` where too many wait,
   * and with the signal's reason where it is aborted while waiting.
   */
  async enter(signal: AbortSignal, { isReturning = false } = {}): Promise<() => void> {
    signal.throwIfAborted();
    if (this.isFull && !isReturning) {
      throw new GatewayError("queue_full", `Cannot begin: ${this.#maxWaiting} requests wait, expected fewer`);
    }
    if (this.#taken < this.#limit) this.#taken += 1;
    else await this.#turn(isReturning ? this.#returning : this.#waiting, signal);
    let isSeated = true;
    return () => {
      if (!isSeated) return;
      isSeated = false;
      // The seat goes to the next one without being free in between.
      const next = this.#returning.shift() ?? this.#waiting.shift();
      if (next === undefined) this.#taken -= 1;
      else next();
    };
  }

  #turn(line: (() => void)[], signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const seated = (): void => {
        signal.removeEventListener("abort", onAbort);
        resolve();
      };
      const onAbort = (): void => {
        line.splice(line.indexOf(seated), 1);
        reject(signal.reason);
      };
      line.push(seated);
      signal.addEventListener("abort", onAbort, { once: true });
    });
  }
}
