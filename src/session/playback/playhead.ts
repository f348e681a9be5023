/**
 * Where on the timeline a listener without any delay would be now: the wall clock's only way into a session. It
 * starts with the first audio after silence, runs in real time, waits when the audio runs out and never goes back.
 */
import { TICKS_PER_MS } from "../../timing/ticks.ts";

export class Playhead {
  #anchorTicks = 0;
  #anchorMs = 0;
  #isRunning = false;

  /** Timeline position at `nowMs`; it never passes `writeTicks`, the end of the audio there is. */
  at(nowMs: number, writeTicks: number): number {
    if (!this.#isRunning) return this.#anchorTicks;
    return Math.min(this.#anchorTicks + (nowMs - this.#anchorMs) * TICKS_PER_MS, writeTicks);
  }

  get isRunning(): boolean {
    return this.#isRunning;
  }

  /** When the playhead will pass (or passed) a position, if audio does not run out before. */
  msAt(ticks: number): number {
    return this.#anchorMs + (ticks - this.#anchorTicks) / TICKS_PER_MS;
  }

  /** Runs from `ticks` on as of `nowMs`. */
  start(ticks: number, nowMs: number): void {
    this.#anchorTicks = ticks;
    this.#anchorMs = nowMs;
    this.#isRunning = true;
  }

  /** Stands still at `ticks`. */
  stop(ticks: number): void {
    this.#anchorTicks = ticks;
    this.#isRunning = false;
  }
}
