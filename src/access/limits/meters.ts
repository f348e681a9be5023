/**
 * What is counted of each address, key, tenant, subject and token. Bounded: whenever one is added, two old ones are looked at, and
 * go where nothing is counted of them any more.
 */
import { Bucket, type Rate } from "./bucket.ts";

/** What is counted while it lasts. Nodes of a cluster send these in this order: new ones come last. */
export const COUNTED = [
  "connections",
  "sessions",
  "utterances",
  "proxied_requests",
  "mp3_streams",
  "rtp_ports",
  "opus_renditions",
] as const;
export type Counted = (typeof COUNTED)[number];
/** What is counted by its rate. */
export const RATED = [
  "opens",
  "failures",
  "body_bytes",
  "characters_per_minute",
  "utterances_per_minute",
  "upload_bytes",
] as const;
export type Rated = (typeof RATED)[number];

/** So many are looked at for each one that is added: more than one, so that old ones go faster than new ones come. */
const LOOKED_AT = 2;
/** Where it is full, so many are looked at to find one that can go. */
const LOOKED_AT_WHEN_FULL = 64;
/** The longest time in which a bucket drains, ms: all rates are of a minute or less. */
const DRAINED_AFTER_MS = 60_000;

interface Taking {
  readonly count: number;
  readonly rate: Rate;
  readonly nowMs: number;
}

/** Counts for one address, key, tenant, subject or token. All times are milliseconds of one monotonic clock. */
export class Meter {
  /** There may be 200,000 meters: most have one count and one bucket. */
  readonly #counts: Record<Counted, number> = {
    connections: 0,
    sessions: 0,
    utterances: 0,
    proxied_requests: 0,
    mp3_streams: 0,
    opus_renditions: 0,
    rtp_ports: 0,
  };
  /** The sum of all counts. */
  #held = 0;
  readonly #buckets: { readonly what: Rated; readonly bucket: Bucket }[] = [];
  /** Characters spoken in all. */
  spent = 0;
  /** Characters that requests under way may cost at most, which is known when they are answered. */
  open = 0;
  /** Until then `spent` counts. */
  keptUntilMs = 0;
  /** Somebody was told that most of it is spent. */
  isLowTold = false;
  #usedMs = 0;

  count(what: Counted): number {
    return this.#counts[what];
  }
  add(what: Counted, change: 1 | -1): void {
    this.#counts[what] += change;
    this.#held += change;
  }

  level(what: Rated, rate: Rate, nowMs: number): number {
    return this.#bucket(what)?.levelAt(nowMs, rate) ?? 0;
  }
  /** See Bucket. */
  take(what: Rated, { count, rate, nowMs }: Taking): void {
    let bucket = this.#bucket(what);
    if (bucket === undefined) {
      bucket = new Bucket();
      this.#buckets.push({ what, bucket });
    }
    bucket.take(count, rate, nowMs);
    this.#usedMs = nowMs;
  }

  /** What it counts would be wrong without it: connections that stand, or a budget that is spent in part. */
  isNeeded(nowMs: number): boolean {
    return this.#held > 0 || this.open > 0 || (this.spent > 0 && this.keptUntilMs > nowMs);
  }
  /** Nothing is counted: without it all would be the same. */
  isIdle(nowMs: number): boolean {
    return !this.isNeeded(nowMs) && nowMs - this.#usedMs >= DRAINED_AFTER_MS;
  }

  #bucket(what: Rated): Bucket | undefined {
    return this.#buckets.find((one) => one.what === what)?.bucket;
  }
}

export class Meters {
  readonly #maxMeters: number;
  readonly #byId = new Map<string, Meter>();
  /** Where the round stands; the map may change meanwhile. */
  #round = this.#byId.entries();

  constructor(maxMeters: number) {
    this.#maxMeters = maxMeters;
  }

  get size(): number {
    return this.#byId.size;
  }

  find(id: string): Meter | undefined {
    return this.#byId.get(id);
  }

  /** The meter of this id; null: there are as many as there may be, and all of them are needed. */
  of(id: string, nowMs: number): Meter | null {
    const known = this.#byId.get(id);
    if (known !== undefined) return known;
    this.#sweep(nowMs);
    if (this.#byId.size >= this.#maxMeters && !this.#makeRoom(nowMs)) return null;
    const meter = new Meter();
    this.#byId.set(id, meter);
    return meter;
  }

  #sweep(nowMs: number): void {
    for (const [id, meter] of this.#next(LOOKED_AT)) {
      if (meter.isIdle(nowMs)) this.#byId.delete(id);
    }
  }

  /** Forgets the rates of one meter, so that there is a place for a new one. */
  #makeRoom(nowMs: number): boolean {
    for (const [id, meter] of this.#next(LOOKED_AT_WHEN_FULL)) {
      if (meter.isNeeded(nowMs)) continue;
      this.#byId.delete(id);
      return true;
    }
    return false;
  }

  /** Those that are looked at next: each once a round, in the order in which they were added. */
  *#next(count: number): Iterable<[string, Meter]> {
    for (let looked = 0; looked < Math.min(count, this.#byId.size); looked += 1) {
      let next = this.#round.next();
      if (next.done === true) {
        this.#round = this.#byId.entries();
        next = this.#round.next();
      }
      if (next.done !== true) yield next.value;
    }
  }
}
