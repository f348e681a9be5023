/** No connection stays for ever: each ends at an age of its own, since all that came back at once would come at once again. */
import { GatewayError } from "../../errors.ts";
import type { Clock, Timer } from "../../kit/clock.ts";

/** The first end at this share of the longest age. */
const SOONEST = 0.9;
/** So often it is looked which are as old as they may be, ms; the shortest age is a minute. */
const CHECK_MS = 1000;

export interface ConnectionAgesOptions {
  readonly clock: Clock;
  /** Longest age; 0: no limit. */
  readonly maxMinutes: number;
  /** One is ended. */
  readonly onEnd?: (error: GatewayError) => void;
}

interface Aging {
  readonly endMs: number;
  readonly end: (error: GatewayError) => void;
}

/** How old WebSockets, and audio and captions over HTTP, may get. */
export class ConnectionAges {
  readonly #clock: Clock;
  readonly #maxMs: number;
  readonly #onEnd: (error: GatewayError) => void;
  readonly #open = new Set<Aging>();
  #timer: Timer | null = null;

  constructor({ clock, maxMinutes, onEnd = () => undefined }: ConnectionAgesOptions) {
    this.#clock = clock;
    this.#maxMs = maxMinutes * 60_000;
    this.#onEnd = onEnd;
  }

  /** `end`: it is as old as it may be. What it returns is for when it has ended. Idempotent. */
  begin(end: Aging["end"]): () => void {
    if (this.#maxMs === 0) return () => undefined;
    const share = SOONEST + (1 - SOONEST) * Math.random();
    const aging = { endMs: this.#clock.nowMs() + share * this.#maxMs, end };
    this.#open.add(aging);
    this.#checkLater();
    return () => {
      this.#open.delete(aging);
    };
  }

  close(): void {
    this.#open.clear();
    this.#timer?.cancel();
  }

  #checkLater(): void {
    if (this.#timer !== null || this.#open.size === 0) return;
    const nowMs = this.#clock.nowMs();
    this.#timer = this.#clock.at(nowMs + CHECK_MS, () => this.#check());
  }

  #check(): void {
    this.#timer = null;
    const nowMs = this.#clock.nowMs();
    for (const aging of this.#open) {
      if (aging.endMs > nowMs) continue;
      this.#open.delete(aging);
      const error = new GatewayError(
        "connection_age",
        "The connection is as old as it may be: connect again",
      );
      this.#onEnd(error);
      aging.end(error);
    }
    this.#checkLater();
  }
}
