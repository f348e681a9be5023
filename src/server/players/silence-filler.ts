/**
 * Keeps a response flowing in real time where the session has nothing to say: counts how much audio has left against
 * the clock and asks for frames of silence before it runs dry.
 */
import type { Clock, Timer } from "../../kit/clock.ts";

export interface SilenceFillerOptions {
  readonly clock: Clock;
  readonly frameMs: number;
  /** The listener's lead: silence is at most this far ahead, ms. */
  readonly leadMs: number;
  /** Whether the client takes nothing for now: time that passes then is not made up for. */
  readonly isBlocked: () => boolean;
  readonly send: (frames: number) => void;
}

/** How far ahead of the clock silence is sent at most, ms: speech that comes is late by as much. */
const MAX_AHEAD_MS = 100;
const TICK_MS = 40;

export class SilenceFiller {
  readonly #options: SilenceFillerOptions;
  readonly #aheadMs: number;
  /** When the client has played all that was sent, if it plays at once; clock ms. */
  #dryMs: number;
  #timer: Timer | null = null;

  constructor(options: SilenceFillerOptions) {
    this.#options = options;
    this.#aheadMs = Math.min(MAX_AHEAD_MS, options.leadMs);
    this.#dryMs = options.clock.nowMs();
  }

  start(): void {
    this.#tick();
  }

  /** Frames of the session have left, or were given up. */
  note(frames: number): void {
    this.#dryMs = Math.max(this.#dryMs, this.#options.clock.nowMs()) + frames * this.#options.frameMs;
  }

  /** Idempotent. */
  stop(): void {
    this.#timer?.cancel();
    this.#timer = null;
  }

  #tick(): void {
    const { clock, frameMs, isBlocked, send } = this.#options;
    const nowMs = clock.nowMs();
    this.#timer = clock.at(nowMs + TICK_MS, () => this.#tick());
    if (isBlocked()) {
      this.#dryMs = Math.max(this.#dryMs, nowMs);
      return;
    }
    const frames = Math.floor((nowMs + this.#aheadMs - this.#dryMs) / frameMs);
    if (frames <= 0) return;
    this.#dryMs += frames * frameMs;
    send(frames);
  }
}
