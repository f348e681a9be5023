/**
 * Whether an upstream is fit to be asked, judged by what became of requests and checks: a circuit breaker.
 *
 *           3 failures in a row (1 until a request was answered)
 *   up  ------------------------------------------------------->  down
 *       <-------------------------------------------------------
 *                      a check (or a request) is answered
 *
 * A check that is answered does not say that speech works: until a request is answered, one failure is enough again, and
 * the next check comes later. Where coming back is heard, as another voice, several checks in a row have to be answered.
 */

const MAX_FAILURES = 3;
/** From going down to the first check; twice as long each time, up to the longest. */
const FIRST_CHECK_MS = 1000;
const LONGEST_CHECK_MS = 30_000;
/** One that was not used for so long is checked, so that the news of its end does not wait for a caller. */
const IDLE_CHECK_MS = 60_000;
/** Gateways that lost the same upstream do not all come back in the same moment: times are between these parts of themselves. */
const JITTER = { least: 0.8, most: 1.2 };

export type HealthChange = "down" | "back";

export interface HealthOptions {
  readonly checksToRise?: number;
}

export class Health {
  readonly #nowMs: () => number;
  readonly #checksToRise: number;
  #goodChecks = 0;
  #failures = 0;
  /** A request was answered since it came back, or began. */
  #isProven = false;
  /** Times that it went down, or stayed so, without a request answered between. */
  #downs = 0;
  #downSinceMs: number | null = null;
  #failedMs = Number.NEGATIVE_INFINITY;
  #checkMs: number;

  /** `nowMs`: monotonic. `checksToRise`: so many in a row bring it back; default 1. */
  constructor(nowMs: () => number, { checksToRise = 1 }: HealthOptions = {}) {
    this.#nowMs = nowMs;
    this.#checksToRise = checksToRise;
    this.#checkMs = nowMs() + jittered(IDLE_CHECK_MS);
  }

  get isUp(): boolean {
    return this.#downSinceMs === null;
  }
  /** When it failed last; -Infinity: never. */
  get failedMs(): number {
    return this.#failedMs;
  }
  /** When to check it next. */
  get checkMs(): number {
    return this.#checkMs;
  }
  /** How long it has been down; 0 where it is up. */
  get downForMs(): number {
    return this.#downSinceMs === null ? 0 : this.#nowMs() - this.#downSinceMs;
  }

  /** It is being asked: no check is needed for a while. */
  use(): void {
    if (this.isUp) this.#checkMs = this.#nowMs() + jittered(IDLE_CHECK_MS);
  }

  /** A check could not be made, or another one is to follow soon. */
  postpone(): void {
    this.#checkMs = this.#nowMs() + jittered(FIRST_CHECK_MS);
  }

  /** A request was answered. */
  answered(): HealthChange | null {
    this.#isProven = true;
    this.#downs = 0;
    return this.#rise();
  }

  /** A check was answered. What requests have failed with is not forgotten for that. */
  checked(): HealthChange | null {
    if (!this.isUp) {
      this.#goodChecks += 1;
      if (this.#goodChecks >= this.#checksToRise) return this.#rise();
      this.postpone();
      return null;
    }
    // Up and without a failure for the whole time until this check.
    this.#downs = 0;
    this.#checkMs = this.#nowMs() + jittered(IDLE_CHECK_MS);
    return null;
  }

  /** A request or a check has failed. */
  failed(): HealthChange | null {
    this.#failures += 1;
    this.#goodChecks = 0;
    this.#failedMs = this.#nowMs();
    const wasUp = this.isUp;
    // A region that nobody uses is looked at again soon after a single failure; one that is used shows by itself.
    const isOver = !wasUp || this.#failures >= (this.#isProven ? MAX_FAILURES : 1);
    if (isOver) {
      this.#downs += 1;
      this.#downSinceMs ??= this.#failedMs;
      this.#isProven = false;
    }
    const waitMs = Math.min(FIRST_CHECK_MS * 2 ** Math.max(0, this.#downs - 1), LONGEST_CHECK_MS);
    this.#checkMs = this.#failedMs + jittered(waitMs);
    return isOver && wasUp ? "down" : null;
  }

  #rise(): HealthChange | null {
    const wasUp = this.isUp;
    this.#failures = 0;
    this.#goodChecks = 0;
    this.#downSinceMs = null;
    this.#checkMs = this.#nowMs() + jittered(IDLE_CHECK_MS);
    return wasUp ? null : "back";
  }
}

function jittered(ms: number): number {
  return ms * (JITTER.least + Math.random() * (JITTER.most - JITTER.least));
}
