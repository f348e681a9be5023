/**
 * A token bucket, kept the other way round: what was taken drains away, so that an empty one needs no rate to be made. Who asks
 * brings the rate, since two tokens of one subject may name different ones.
 */

/** `burst` at once, and from then on as much as drains. */
export interface Rate {
  readonly burst: number;
  readonly perMs: number;
}

export function perMinute(count: number): Rate {
  return { burst: count, perMs: count / 60_000 };
}

/** `burstSeconds`: how many seconds' worth may come at once. */
export function perSecond(count: number, burstSeconds: number): Rate {
  return { burst: count * burstSeconds, perMs: count / 1000 };
}

export class Bucket {
  #level = 0;
  #atMs = 0;

  /** What was taken and has not drained. */
  levelAt(nowMs: number, { perMs }: Rate): number {
    return Math.max(0, this.#level - (nowMs - this.#atMs) * perMs);
  }

  /** How long until so many may be taken, ms; 0: they may be taken now. */
  waitMs(count: number, rate: Rate, nowMs: number): number {
    const over = this.levelAt(nowMs, rate) + count - rate.burst;
    return over <= 0 ? 0 : over / rate.perMs;
  }

  /** Without asking whether they may be taken. A negative count gives back. */
  take(count: number, rate: Rate, nowMs: number): void {
    this.#level = Math.max(0, this.levelAt(nowMs, rate) + count);
    this.#atMs = nowMs;
  }
}
