/** One of several upstreams that do the same work: it, its health, and the checks that find out when it is back. */
import type { GroupLimit } from "../governor.ts";
import { HttpUpstream, type HttpUpstreamOptions } from "../http-upstream.ts";
import { checkHealth } from "./health-check.ts";
import { WatchedHealth } from "./watched-health.ts";

export interface RegionStats {
  /** The vendor's region, else the host. */
  readonly name: string;
  readonly isHealthy: boolean;
  /** Requests begun here; checks are not among them. */
  readonly requests: number;
  /** Those of them that went on to another region. */
  readonly failovers: number;
  readonly limits: readonly GroupLimit[];
  /** Requests that hold a connection, those that wait for one, and most that may hold one. */
  readonly open: number;
  readonly queued: number;
  readonly maxOpen: number;
  /** Requests that failed in the last minute because it does not work. */
  readonly errorsLastMinute: number;
  /** See HttpUpstream.behindMs. */
  readonly behindMs: number;
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
  readonly health: WatchedHealth;
  failovers = 0;
  #requests = 0;

  constructor(options: RegionOptions) {
    const { name, clock, log, onDown } = options;
    this.name = name;
    this.health = new WatchedHealth({
      ...{ name, clock, log },
      check: () => checkHealth(this.upstream, clock),
      onDown: () => onDown(this),
    });
    this.upstream = new HttpUpstream({ ...options, onOutcome: (fault) => this.health.onOutcome(fault) });
  }

  /** Counts a request that is about to begin here. */
  use(): HttpUpstream {
    this.#requests += 1;
    this.health.use();
    return this.upstream;
  }

  stats(): RegionStats {
    const { open, queued } = this.upstream.stats();
    return {
      name: this.name,
      isHealthy: this.health.isUp,
      requests: this.#requests,
      failovers: this.failovers,
      limits: this.upstream.limits(MAX_LIMITS),
      ...{ open, queued, maxOpen: this.upstream.maxOpen },
      errorsLastMinute: this.health.errorsLastMinute,
      behindMs: this.upstream.behindMs,
    };
  }

  /** Idempotent. */
  close(): Promise<void> {
    this.health.close();
    return this.upstream.close();
  }
}
