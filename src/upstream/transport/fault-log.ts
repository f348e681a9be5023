/**
 * Faults whose cause is the operator's business: addresses and system errors go to the log under a short id, and the
 * client's message carries the id.
 */
import { randomBytes } from "node:crypto";
import type { Clock } from "../../kit/clock.ts";
import type { Logger } from "../../kit/log.ts";

/** Faults of one cause share a line and an id for so long: a dead upstream must not flood the log, ms. */
const SHARED_MS = 1000;
/** Causes that are remembered; the oldest go. */
const MAX_CAUSES = 32;

interface Noted {
  readonly id: string;
  readonly atMs: number;
}

export class FaultLog {
  readonly #log: Logger;
  readonly #clock: Clock;
  readonly #noted = new Map<string, Noted>();

  constructor(log: Logger, clock: Clock) {
    this.#log = log;
    this.#clock = clock;
  }

  /** Logs the fault and returns its id. `cause`: a word of a bounded set, e.g. an error code; `fields` may hold addresses. */
  note(
    message: string,
    { cause, ...fields }: { readonly cause: string; readonly [field: string]: unknown },
  ): string {
    const atMs = this.#clock.nowMs();
    const last = this.#noted.get(cause);
    if (last !== undefined && atMs - last.atMs < SHARED_MS) return last.id;
    const id = randomBytes(4).toString("hex");
    this.#noted.delete(cause);
    this.#noted.set(cause, { id, atMs });
    const [oldest] = this.#noted.keys();
    if (this.#noted.size > MAX_CAUSES && oldest !== undefined) this.#noted.delete(oldest);
    this.#log.warn({ error_id: id, cause, ...fields }, message);
    return id;
  }
}
