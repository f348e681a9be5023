/**
 * The way of cues to one service: in order, one at a time, tried again where that may help. Bounded: where the service is
 * too slow the oldest go, because a caption is of no use long after it was said.
 */
import { backoffMs } from "../../client/backoff.ts";
import type { Clock, Timer } from "../../kit/clock.ts";
import { type CaptionTarget, type ShownCue, TargetError } from "./captions-target.ts";

export interface CaptionQueueOptions {
  readonly target: CaptionTarget;
  readonly clock: Clock;
  /** Writes a line for people; called at most once a minute. */
  readonly warn: (line: string) => void;
  /** 0-1, for the waits between tries. */
  readonly random: () => number;
}

const MAX_WAITING = 32;
const MAX_TRIES = 6;
const FIRST_DELAY_MS = 250;
const MAX_DELAY_MS = 5000;
const WARN_EVERY_MS = 60_000;

export class CaptionQueue {
  readonly #options: CaptionQueueOptions;
  readonly #waiting: ShownCue[] = [];
  readonly #abort = new AbortController();
  #working: Promise<void> | null = null;
  #warnedMs = Number.NEGATIVE_INFINITY;
  /** Captions that no line has counted yet. */
  #lost = 0;
  #wait: { readonly timer: Timer; readonly done: () => void } | null = null;
  sent = 0;

  constructor(options: CaptionQueueOptions) {
    this.#options = options;
  }

  /** Never throws and never waits. */
  push(shown: ShownCue): void {
    if (this.#abort.signal.aborted) return;
    this.#waiting.push(shown);
    if (this.#waiting.length > MAX_WAITING) {
      this.#waiting.shift();
      this.#warn("is too slow: its oldest captions were dropped", 1);
    }
    this.#working ??= this.#work();
  }

  /** Drops what waits and ends what is under way. Idempotent. */
  async close(): Promise<void> {
    this.#abort.abort();
    this.#waiting.length = 0;
    this.#wait?.timer.cancel();
    this.#wait?.done();
    await this.#working;
    this.#options.target.close();
  }

  async #work(): Promise<void> {
    for (;;) {
      const shown = this.#waiting.shift();
      if (shown === undefined) break;
      await this.#deliver(shown);
    }
    this.#working = null;
  }

  async #deliver(shown: ShownCue): Promise<void> {
    const { target } = this.#options;
    const { signal } = this.#abort;
    for (let attempt = 1; !signal.aborted; attempt += 1) {
      try {
        await target.send(shown, signal);
        this.sent += 1;
        return;
      } catch (thrown) {
        if (signal.aborted) return;
        const isKnown = thrown instanceof TargetError;
        const reason = isKnown ? thrown.message : "failed";
        if (!isKnown || !thrown.isRetryable || attempt >= MAX_TRIES) {
          this.#warn(`${reason}: a caption was dropped`, 1);
          return;
        }
        this.#warn(`${reason}: trying again`, 0);
        await this.#pause(attempt);
      }
    }
  }

  #pause(attempt: number): Promise<void> {
    const { clock, random } = this.#options;
    const delayMs = backoffMs(attempt, random(), { firstDelayMs: FIRST_DELAY_MS, maxDelayMs: MAX_DELAY_MS });
    return new Promise((resolve) => {
      this.#wait = { timer: clock.at(clock.nowMs() + delayMs, resolve), done: resolve };
    });
  }

  #warn(what: string, lost: number): void {
    const { clock, target, warn } = this.#options;
    this.#lost += lost;
    if (clock.nowMs() - this.#warnedMs < WARN_EVERY_MS) return;
    this.#warnedMs = clock.nowMs();
    const count = this.#lost > 1 ? ` (${this.#lost} lost since the last word about it)` : "";
    this.#lost = 0;
    warn(`${target.name} ${what}${count}`);
  }
}
