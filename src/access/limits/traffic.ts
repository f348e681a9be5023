/** How much one connection sends. What is over its rate is refused; who goes on with it for seconds is closed. */
import { Bucket, perSecond, type Rate } from "./bucket.ts";
import { LimitError } from "./limit-error.ts";

/**
 * What may come at once, in seconds' worth. Of 200 messages these are 5,000: a text that comes letter by letter is a message each,
 * and its speaker may send `credit-chars` of them before it hears `paused`.
 */
const MESSAGES_BURST_SECONDS = 25;
export const BYTES_BURST_SECONDS = 16;
/** Who has sent too much for so long does not heed the answers, ms. */
const MAX_OVER_MS = 5000;

export interface TrafficOptions {
  /** 0: no limit. */
  readonly messagesPerSecond: number;
  readonly bytesPerSecond: number;
}

interface Flow {
  readonly what: "messages" | "bytes";
  readonly rate: Rate;
  readonly bucket: Bucket;
}

export class Traffic {
  readonly #flows: readonly Flow[];
  #overSinceMs: number | null = null;

  constructor({ messagesPerSecond, bytesPerSecond }: TrafficOptions) {
    this.#flows = [
      ...flowOf("messages", messagesPerSecond, MESSAGES_BURST_SECONDS),
      ...flowOf("bytes", bytesPerSecond, BYTES_BURST_SECONDS),
    ];
  }

  /** A message has come. Throws rate_limited where it may not be handled. */
  take(bytes: number, nowMs: number): void {
    const countOf = ({ what }: Flow): number => (what === "messages" ? 1 : bytes);
    for (const flow of this.#flows) this.#mustTake(flow, countOf(flow), nowMs);
    for (const flow of this.#flows) flow.bucket.take(countOf(flow), flow.rate, nowMs);
    if (this.#overSinceMs === null) return;
    const isCalm = this.#flows.every(({ bucket, rate }) => bucket.levelAt(nowMs, rate) <= rate.burst / 2);
    if (isCalm) this.#overSinceMs = null;
  }

  /** It has been over its rate for too long: the connection is to be closed. */
  isFlooding(nowMs: number): boolean {
    return this.#overSinceMs !== null && nowMs - this.#overSinceMs >= MAX_OVER_MS;
  }

  #mustTake({ what, rate, bucket }: Flow, count: number, nowMs: number): void {
    // A message that is longer than the burst is taken when all before it has drained.
    const waitMs = bucket.waitMs(Math.min(count, rate.burst), rate, nowMs);
    if (waitMs === 0) return;
    this.#overSinceMs ??= nowMs;
    const perSecondNow = Math.round(rate.perMs * 1000);
    const level = bucket.levelAt(nowMs, rate);
    throw new LimitError("rate_limited", `Connection sends more than ${perSecondNow} ${what} a second`, {
      rate: { limit: rate.burst, remaining: Math.max(0, rate.burst - level), resetMs: level / rate.perMs },
      retryAfterMs: Math.ceil(waitMs),
    });
  }
}

function flowOf(what: Flow["what"], count: number, burstSeconds: number): Flow[] {
  return count === 0 ? [] : [{ what, rate: perSecond(count, burstSeconds), bucket: new Bucket() }];
}
