/** One of several upstreams that do the same work: it, its health, and the checks that find out when it is back. */
import type { ErrorCode } from "../../errors.ts";
import type { Timer } from "../../kit/clock.ts";
import type { GroupLimit } from "../governor.ts";
import { HttpUpstream, type HttpUpstreamOptions } from "../http-upstream.ts";
import { Health, type HealthChange } from "./health.ts";
import { type CheckResult, checkHealth } from "./health-check.ts";

export interface RegionStats {
  /** The vendor's region, else the host. */
  readonly name: string;
  readonly isHealthy: boolean;
  /** Requests begun here; checks are not among them. */
  readonly requests: number;
  /** Those of them that went on to another region. */
  readonly failovers: number;
  readonly limits: readonly GroupLimit[];
}

export interface RegionOptions extends Omit<HttpUpstreamOptions, "onOutcome"> {
  readonly name: string;
  readonly onDown: (region: Region) => void;
}

/** Series of one metric. */
const MAX_LIMITS = 20;

export class Region {
  readonly name: string;
  readonly upstream: HttpUpstream;
  readonly health: Health;
  failovers = 0;
  readonly #options: RegionOptions;
  #requests = 0;
  #checkTimer: Timer | null = null;
  #isWatched = false;
  #isChecking = false;
  #isClosed = false;

  constructor(options: RegionOptions) {
    this.#options = options;
    this.name = options.name;
    this.health = new Health(() => options.clock.nowMs());
    this.upstream = new HttpUpstream({ ...options, onOutcome: (fault) => this.#onOutcome(fault) });
  }

  /** Checks it from now on while nobody asks: for one that there is another beside. Ended by `close`. */
  watch(): void {
    this.#isWatched = true;
    this.#armCheck();
  }

  /** Counts a request that is about to begin here. */
  use(): HttpUpstream {
    this.#requests += 1;
    this.health.use();
    return this.upstream;
  }

  stats(): RegionStats {
    return {
      name: this.name,
      isHealthy: this.health.isUp,
      requests: this.#requests,
      failovers: this.failovers,
      limits: this.upstream.limits(MAX_LIMITS),
    };
  }

  /** Idempotent. */
  close(): Promise<void> {
    this.#isClosed = true;
    this.#checkTimer?.cancel();
    this.#checkTimer = null;
    return this.upstream.close();
  }

  #onOutcome(fault: ErrorCode | null): void {
    const downForMs = this.health.downForMs;
    if (fault === null) this.#report(this.health.answered(), { downForMs });
    else {
      this.#report(this.health.failed(), { code: fault });
      this.#armCheck();
    }
  }

  #report(
    change: HealthChange | null,
    facts: { readonly downForMs?: number; readonly code?: ErrorCode },
  ): void {
    if (change === null || this.#isClosed) return;
    const { log, onDown } = this.#options;
    if (change === "down") {
      log.warn({ region: this.name, code: facts.code }, "Upstream region is down");
      onDown(this);
    } else {
      log.info({ region: this.name, down_ms: Math.round(facts.downForMs ?? 0) }, "Upstream region is back");
    }
  }

  #armCheck(): void {
    if (!this.#isWatched || this.#isClosed || this.#isChecking) return;
    const { clock } = this.#options;
    this.#checkTimer?.cancel();
    this.#checkTimer = clock.at(this.health.checkMs, () => {
      this.#checkTimer = null;
      // It was used in the meantime.
      if (clock.nowMs() < this.health.checkMs) this.#armCheck();
      else this.#check();
    });
  }

  #check(): void {
    this.#isChecking = true;
    // It never rejects.
    void checkHealth(this.upstream, this.#options.clock).then((result) => this.#onChecked(result));
  }

  #onChecked(result: CheckResult): void {
    this.#isChecking = false;
    const downForMs = this.health.downForMs;
    if (result === undefined) this.health.postpone();
    else if (result === null) this.#report(this.health.checked(), { downForMs });
    else this.#report(this.health.failed(), { code: result });
    this.#armCheck();
  }
}
