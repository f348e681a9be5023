/**
 * One request over several regions, with one of them at a time: who was asked, who is asked now, and the move to the next.
 * What may move, and what of an answer is handed on, is for its owner to say.
 */
import type { Region } from "./region.ts";
import type { RegionSet, Unsent } from "./region-set.ts";

/** The request as it is with one region. */
interface Ongoing {
  pause(): void;
  resume(): void;
  /** Calls no handler any more. Idempotent, also once it has failed. */
  abort(): void;
}

export interface FailoverTriesOptions<A extends Ongoing> {
  readonly regions: RegionSet;
  /** The one to begin with. */
  readonly first: Region;
  /** Asks a region, once for each. `hasOther`: a healthy one is left to go to. */
  readonly begin: (region: Region, hasOther: boolean) => A;
  /** Whether another region may have it: asked when its region goes down before anything was sent. */
  readonly isMovable: () => boolean;
}

export class FailoverTries<A extends Ongoing> implements Unsent {
  readonly #options: FailoverTriesOptions<A>;
  readonly #tried = new Set<Region>();
  #region: Region;
  #current: A;
  #isPaused = false;
  #isSent = false;

  constructor(options: FailoverTriesOptions<A>) {
    this.#options = options;
    this.#region = options.first;
    this.#current = this.#begin();
  }

  get region(): Region {
    return this.#region;
  }
  get current(): A {
    return this.#current;
  }
  /** Whether the region that is asked now may have it. */
  get isSent(): boolean {
    return this.#isSent;
  }

  /** Holds for the regions to come, too. */
  pause(): void {
    this.#isPaused = true;
    this.#current.pause();
  }
  resume(): void {
    this.#isPaused = false;
    this.#current.resume();
  }

  /** The request goes out: from here on its region's health does not move it. */
  noteSent(): void {
    this.#isSent = true;
    this.#options.regions.forget(this);
  }

  /** The region that is asked now has failed: asks the next one, healthy or not. false: all were tried. */
  tryNext(): boolean {
    return this.#goTo(this.#options.regions.next(this.#tried));
  }

  /** Unsent: the region is down. */
  moveOn(): void {
    const { regions, isMovable } = this.#options;
    if (isMovable()) this.#goTo(regions.nextHealthy(this.#tried));
  }

  /** It moves no more, whatever becomes of its region. Idempotent. */
  settle(): void {
    this.#options.regions.forget(this);
  }

  #goTo(next: Region | undefined): boolean {
    if (next === undefined) return false;
    this.#current.abort();
    this.#region.failovers += 1;
    this.#region = next;
    this.#isSent = false;
    this.#current = this.#begin();
    if (this.#isPaused) this.#current.pause();
    return true;
  }

  #begin(): A {
    const { regions, begin } = this.#options;
    this.#tried.add(this.#region);
    regions.remember(this);
    return begin(this.#region, regions.nextHealthy(this.#tried) !== undefined);
  }
}
