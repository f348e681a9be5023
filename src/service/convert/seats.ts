/** Who may work at the same time, and who waits: both bounded. */
import { GatewayError } from "../../errors.ts";

export class Seats {
  readonly #limit: number;
  readonly #maxWaiting: number;
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

  /**
   * Resolves with what gives the seat back (idempotent). Rejects with GatewayError `queue_full` where too many wait, and
   * with the signal's reason where it is aborted while waiting.
   */
  async enter(signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted();
    if (this.#taken < this.#limit) this.#taken += 1;
    else await this.#wait(signal);
    let isSeated = true;
    return () => {
      if (!isSeated) return;
      isSeated = false;
      // The seat goes to the next one without being free in between.
      const next = this.#waiting.shift();
      if (next === undefined) this.#taken -= 1;
      else next();
    };
  }

  #wait(signal: AbortSignal): Promise<void> {
    if (this.#waiting.length >= this.#maxWaiting) {
      const message = `Cannot convert the voice: ${this.#maxWaiting} requests wait, expected fewer`;
      return Promise.reject(new GatewayError("queue_full", message));
    }
    return new Promise((resolve, reject) => {
      const seated = (): void => {
        signal.removeEventListener("abort", onAbort);
        resolve();
      };
      const onAbort = (): void => {
        this.#waiting.splice(this.#waiting.indexOf(seated), 1);
        reject(signal.reason);
      };
      this.#waiting.push(seated);
      signal.addEventListener("abort", onAbort, { once: true });
    });
  }
}
