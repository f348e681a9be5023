/** The regions in order of preference: which of them a request goes to, and to which when that fails. */
import type { GatewayError } from "../../errors.ts";
import { isUpstreamFault } from "../transport/faults.ts";
import type { Region } from "./region.ts";

/** A request that is with a region and has sent it nothing yet. */
export interface Unsent {
  readonly region: Region;
  /** Goes to another one that is healthy, if there is any. */
  moveOn(): void;
}

export class RegionSet {
  readonly #unsent = new Set<Unsent>();
  #all: readonly Region[] = [];

  get all(): readonly Region[] {
    return this.#all;
  }

  /** Once, before anything is asked: regions need the set, too. */
  fill(regions: readonly Region[]): void {
    this.#all = regions;
  }

  /**
   * The first healthy one, in order, that was not tried; else the one whose failure is longest ago; undefined: all were
   * tried.
   */
  next(tried: ReadonlySet<Region>): Region | undefined {
    const healthy = this.nextHealthy(tried);
    if (healthy !== undefined) return healthy;
    const left = this.#all.filter((region) => !tried.has(region));
    return left.reduce<Region | undefined>(
      (best, region) => (best === undefined || region.health.failedMs < best.health.failedMs ? region : best),
      undefined,
    );
  }

  nextHealthy(tried: ReadonlySet<Region>): Region | undefined {
    return this.#all.find((region) => region.health.isUp && !tried.has(region));
  }

  /** Until `forget`: it is moved when its region goes down. */
  remember(request: Unsent): void {
    this.#unsent.add(request);
  }

  /** Idempotent. */
  forget(request: Unsent): void {
    this.#unsent.delete(request);
  }

  onDown(region: Region): void {
    for (const request of [...this.#unsent]) if (request.region === region) request.moveOn();
  }
}

/** Whether another region may do better: this one does not work, or its queue is full. */
export function mayMove(error: GatewayError): boolean {
  return isUpstreamFault(error) || error.code === "upstream_busy";
}
