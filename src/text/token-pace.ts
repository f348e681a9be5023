/** How fast the tokens of a text come, and so when a text that stands still has dried up. */

/** A longer gap says nothing about the pace: the client was thinking, or called a tool. */
const MAX_GAP_MS = 1000;
const MIN_STALL_MS = 80;
/** With fewer gaps the pace is a guess. */
const MIN_GAPS = 3;

/** Smoothed as round trip times are for retransmission (RFC 6298, 2: gains 1/8 and 1/4, four deviations). */
export class TokenPace {
  #lastMs: number | null = null;
  #gaps = 0;
  #meanMs = 0;
  #deviationMs = 0;

  /** When the last token came; 0 before the first. */
  get lastMs(): number {
    return this.#lastMs ?? 0;
  }

  /** A token came, at `nowMs` of a clock that does not go backwards. */
  token(nowMs: number): void {
    if (this.#lastMs !== null) this.#learn(Math.max(0, nowMs - this.#lastMs));
    this.#lastMs = nowMs;
  }

  /** How long after the last token the stream counts as dried up: 80 ms to `maxMs`, half of that while unknown. */
  stallMs(maxMs: number): number {
    if (this.#gaps < MIN_GAPS) return maxMs / 2;
    return Math.min(maxMs, Math.max(MIN_STALL_MS, this.#meanMs + 4 * this.#deviationMs));
  }

  #learn(gapMs: number): void {
    if (gapMs > MAX_GAP_MS) return;
    if (this.#gaps === 0) {
      this.#meanMs = gapMs;
      this.#deviationMs = gapMs / 2;
    } else {
      this.#deviationMs += (Math.abs(gapMs - this.#meanMs) - this.#deviationMs) / 4;
      this.#meanMs += (gapMs - this.#meanMs) / 8;
    }
    this.#gaps += 1;
  }
}
