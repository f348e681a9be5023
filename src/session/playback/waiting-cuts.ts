/** Interruptions with `keep_ms` that wait for their moment: bounded, and each for the utterances that it was given for. */
import { GatewayError } from "../../errors.ts";
import type { Clock, Timer } from "../../kit/clock.ts";
import type { Utterance } from "./utterance.ts";

const MAX_WAITING = 16;

export class WaitingCuts {
  readonly #clock: Clock;
  readonly #waiting = new Map<Timer, Set<Utterance>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Calls `cut` at `atMs` with those of the targets that were not cut meanwhile. Throws queue_full. */
  add(atMs: number, targets: readonly Utterance[], cut: (targets: readonly Utterance[]) => void): void {
    if (this.#waiting.size >= MAX_WAITING) {
      throw new GatewayError("queue_full", `Interruptions are full: ${MAX_WAITING} wait for their moment`, {
        retryAfterMs: Math.ceil(atMs - this.#clock.nowMs()),
      });
    }
    const waiting = new Set(targets);
    const timer = this.#clock.at(atMs, () => {
      this.#waiting.delete(timer);
      cut([...waiting]);
    });
    this.#waiting.set(timer, waiting);
  }

  /** These were cut: an earlier order is not for one that goes on since. */
  forget(targets: readonly Utterance[]): void {
    for (const waiting of this.#waiting.values()) for (const target of targets) waiting.delete(target);
  }

  /** Idempotent. */
  close(): void {
    for (const timer of this.#waiting.keys()) timer.cancel();
    this.#waiting.clear();
  }
}
