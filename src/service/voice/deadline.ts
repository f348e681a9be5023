/**
 * When a job's client needs what the job makes next, on the scheduler's clock: what has left is played in real time from when
 * the first of it left, or from when what the client had in hand is over.
 */

/** Whose player has less than that left goes before those that wait for their first frame: a pause in a word is heard. */
const SPARE_MS = 300;
/** A first frame is late from then on, and needed as much as all others: nobody waits for ever. */
export const FIRST_PATIENCE_MS = 2000;

export class Deadline {
  #dueMs: number;
  /** What had left when it was asked last. */
  #leftMs = 0;
  #isHeard: boolean;

  /** `aheadMs`: see JobSpec. */
  constructor(nowMs: number, aheadMs: number | undefined) {
    this.#isHeard = aheadMs !== undefined;
    this.#dueMs = nowMs + (aheadMs ?? FIRST_PATIENCE_MS);
  }

  /** Its client plays something, or will have something to play. */
  get isHeard(): boolean {
    return this.#isHeard;
  }

  get dueMs(): number {
    return this.#dueMs;
  }

  /** So much of the response has left by now. A player that ran dry goes on with what it gets. */
  noteLeft(leftMs: number, nowMs: number): void {
    const newMs = leftMs - this.#leftMs;
    if (newMs <= 0) return;
    this.#dueMs = (this.#isHeard ? Math.max(this.#dueMs, nowMs) : nowMs) + newMs;
    this.#leftMs = leftMs;
    this.#isHeard = true;
  }
}

/**
 * Which of them goes next: who is about to run dry, then who waits for the first frame, then who needs it first. Undefined where
 * there is none. Of several that need it at the same time, the first in the list.
 */
export function nextTurn<T extends { readonly deadline: Deadline }>(
  ready: readonly T[],
  nowMs: number,
): T | undefined {
  let [soonest, unheard]: (T | undefined)[] = [];
  for (const one of ready) {
    const { dueMs, isHeard } = one.deadline;
    if (soonest === undefined || dueMs < soonest.deadline.dueMs) soonest = one;
    if (!isHeard && (unheard === undefined || dueMs < unheard.deadline.dueMs)) unheard = one;
  }
  const isUrgent = soonest !== undefined && soonest.deadline.dueMs <= nowMs + SPARE_MS;
  return isUrgent ? soonest : (unheard ?? soonest);
}
