/**
 * How much of what one connection sends is refused. Each refusal is answered, and costs as much as a message that is taken:
 * who sends on whatever the answer is keeps the process from everybody else.
 */

/** In a second: of what an obedient client had sent when its text was cut, one letter each, no more than its credit is refused. */
export const MAX_REFUSALS_A_SECOND = 5000;

export class Refusals {
  #fromMs = Number.NEGATIVE_INFINITY;
  #count = 0;

  /** One more; true where they are more than anybody sends by mistake. */
  note(nowMs: number): boolean {
    if (nowMs - this.#fromMs >= 1000) {
      this.#fromMs = nowMs;
      this.#count = 0;
    }
    this.#count += 1;
    return this.#count > MAX_REFUSALS_A_SECOND;
  }
}
