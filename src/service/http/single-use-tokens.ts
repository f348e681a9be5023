/** Keys for one request, for clients that can't be trusted with the real one. */
import { randomBytes } from "node:crypto";
import type { Clock } from "../../kit/clock.ts";

const LIFE_MS = 900_000;
const MAX_ALIVE = 10_000;
const TOKEN_BYTES = 24;

/** The tokens that may still be used: at most 10,000, the oldest are forgotten; each lives 15 minutes. */
export class SingleUseTokens {
  readonly #clock: Pick<Clock, "nowMs">;
  /** When each ends, ms; in the order of issue, which is that of their ends. */
  readonly #alive = new Map<string, number>();

  constructor(clock: Pick<Clock, "nowMs">) {
    this.#clock = clock;
  }

  issue(): string {
    const nowMs = this.#clock.nowMs();
    for (const [token, endsAtMs] of this.#alive) {
      if (endsAtMs > nowMs && this.#alive.size < MAX_ALIVE) break;
      this.#alive.delete(token);
    }
    const token = `sutkn_${randomBytes(TOKEN_BYTES).toString("hex")}`;
    this.#alive.set(token, nowMs + LIFE_MS);
    return token;
  }

  /** Whether it may be used, and from now on no more. */
  consume(token: string): boolean {
    const endsAtMs = this.#alive.get(token);
    this.#alive.delete(token);
    return endsAtMs !== undefined && endsAtMs > this.#clock.nowMs();
  }
}
