/** Single-use tokens that were used, until they have expired. Bounded: a full list takes no new one until some have. */
import { GatewayError } from "../errors.ts";
import type { Token } from "./caller.ts";

const MAX_USED = 200_000;
const SWEEP_EVERY_MS = 10_000;

export class UsedTokens {
  /** Token id -> when it has expired for everybody. */
  readonly #untilMs = new Map<string, number>();
  #nextSweepMs = 0;

  has({ id }: Token): boolean {
    return this.#untilMs.has(id);
  }

  /** False where it was used before. Throws rate_limited where the list is full. */
  add({ id }: Token, { untilMs, nowMs }: { readonly untilMs: number; readonly nowMs: number }): boolean {
    if (this.#untilMs.has(id)) return false;
    if (nowMs >= this.#nextSweepMs) this.#sweep(nowMs);
    if (this.#untilMs.size >= MAX_USED) {
      const message = `${MAX_USED} single-use tokens were used and have not expired: mint tokens that live shorter`;
      throw new GatewayError("rate_limited", message, { retryAfterMs: SWEEP_EVERY_MS });
    }
    this.#untilMs.set(id, untilMs);
    return true;
  }

  #sweep(nowMs: number): void {
    this.#nextSweepMs = nowMs + SWEEP_EVERY_MS;
    for (const [id, untilMs] of this.#untilMs) if (untilMs <= nowMs) this.#untilMs.delete(id);
  }
}
