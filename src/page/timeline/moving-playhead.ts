/**
 * A playhead that moves between two reports of where it is: by the clock of the screen, and a little faster or slower where
 * the next report says otherwise.
 */

/** A report that is further away than this is believed at once. */
const JUMP_MS = 400;
/** Part of what it is off that each report takes away. */
const EASE = 0.25;

export class MovingPlayhead {
  #placeMs = 0;
  #atMs = Number.NEGATIVE_INFINITY;
  #isMoving = false;
  #limitMs = Number.POSITIVE_INFINITY;

  /** Where it was reported to be at `nowMs`, whether it moves, and how far it can. */
  report(report: { placeMs: number; isMoving: boolean; limitMs: number }, nowMs: number): void {
    const { placeMs, isMoving, limitMs } = report;
    const shownMs = this.at(nowMs);
    const offMs = placeMs - shownMs;
    const isEased = isMoving && this.#isMoving && Math.abs(offMs) < JUMP_MS;
    this.#placeMs = isEased ? shownMs + offMs * EASE : placeMs;
    this.#atMs = nowMs;
    this.#isMoving = isMoving;
    this.#limitMs = limitMs;
  }

  at(nowMs: number): number {
    if (!this.#isMoving) return this.#placeMs;
    return Math.min(this.#placeMs + nowMs - this.#atMs, Math.max(this.#limitMs, this.#placeMs));
  }
}
