/** The health of one upstream, told to the log as it changes, and the checks that find out when it is back. */
import type { ErrorCode } from "../../errors.ts";
import type { Clock, Timer } from "../../kit/clock.ts";
import type { Logger } from "../../kit/log.ts";
import { MinuteCount } from "../../kit/minute-count.ts";
import { Health, type HealthChange, type HealthOptions } from "./health.ts";
import type { CheckResult } from "./health-check.ts";

export interface WatchedHealthOptions extends HealthOptions {
  /** As metrics and the log call it. */
  readonly name: string;
  readonly clock: Clock;
  readonly log: Logger;
  /** Never rejects. */
  readonly check: () => Promise<CheckResult>;
  /** Default: nobody has to know. */
  readonly onDown?: () => void;
}

export class WatchedHealth {
  readonly #options: WatchedHealthOptions;
  readonly #health: Health;
  readonly #errors = new MinuteCount();
  #checkTimer: Timer | null = null;
  #isWatched = false;
  #isChecking = false;
  #isClosed = false;

  constructor(options: WatchedHealthOptions) {
    this.#options = options;
    this.#health = new Health(() => options.clock.nowMs(), options);
  }

  get isUp(): boolean {
    return this.#health.isUp;
  }
  /** When it failed last; -Infinity: never. */
  get failedMs(): number {
    return this.#health.failedMs;
  }

  /** Requests that failed because of it. */
  get errorsLastMinute(): number {
    return this.#errors.at(this.#options.clock.nowMs());
  }

  /** Checks it from now on while nobody asks: for one that there is another beside. Ended by `close`. Idempotent. */
  watch(): void {
    if (this.#isWatched) return;
    this.#isWatched = true;
    this.#armCheck();
  }

  /** A request begins. */
  use(): void {
    this.#health.use();
  }

  /** What a request says of it: null = it works, else how it failed. */
  onOutcome(fault: ErrorCode | null): void {
    const { downForMs } = this.#health;
    if (fault === null) this.#report(this.#health.answered(), { downForMs });
    else {
      this.#errors.add(this.#options.clock.nowMs());
      this.#report(this.#health.failed(), { code: fault });
      this.#armCheck();
    }
  }

  /** Idempotent. */
  close(): void {
    this.#isClosed = true;
    this.#checkTimer?.cancel();
    this.#checkTimer = null;
  }

  #report(
    change: HealthChange | null,
    facts: { readonly downForMs?: number; readonly code?: ErrorCode },
  ): void {
    if (change === null || this.#isClosed) return;
    const { name, log, onDown } = this.#options;
    if (change === "down") {
      log.warn({ region: name, code: facts.code }, "Upstream region is down");
      onDown?.();
    } else {
      log.info({ region: name, down_ms: Math.round(facts.downForMs ?? 0) }, "Upstream region is back");
    }
  }

  #armCheck(): void {
    if (!this.#isWatched || this.#isClosed || this.#isChecking) return;
    const { clock } = this.#options;
    this.#checkTimer?.cancel();
    this.#checkTimer = clock.at(this.#health.checkMs, () => {
      this.#checkTimer = null;
      // It was used in the meantime.
      if (clock.nowMs() < this.#health.checkMs) this.#armCheck();
      else this.#check();
    });
  }

  #check(): void {
    this.#isChecking = true;
    // It never rejects.
    void this.#options.check().then((result) => this.#onChecked(result));
  }

  #onChecked(result: CheckResult): void {
    this.#isChecking = false;
    const { downForMs } = this.#health;
    if (result === undefined) this.#health.postpone();
    else if (result === null) this.#report(this.#health.checked(), { downForMs });
    else this.#report(this.#health.failed(), { code: result });
    this.#armCheck();
  }
}
