/** How often something has happened in the last minute, to five seconds: a dozen numbers, whatever comes. */

const SLOT_MS = 5000;
const SLOTS = 12;

export class MinuteCount {
  readonly #counts: number[] = new Array<number>(SLOTS).fill(0);
  /** The slot that is counted in, since the clock's origin. */
  #slot = 0;

  add(nowMs: number): void {
    this.#turnTo(nowMs);
    const index = this.#slot % SLOTS;
    this.#counts[index] = (this.#counts[index] ?? 0) + 1;
  }

  at(nowMs: number): number {
    this.#turnTo(nowMs);
    return this.#counts.reduce((sum, count) => sum + count, 0);
  }

  #turnTo(nowMs: number): void {
    const slot = Math.floor(nowMs / SLOT_MS);
    const passed = Math.min(SLOTS, slot - this.#slot);
    for (let step = 1; step <= passed; step += 1) this.#counts[(slot - passed + step) % SLOTS] = 0;
    this.#slot = Math.max(this.#slot, slot);
  }
}
