/** Single-use tokens that were used, until they have expired. Bounded: a full list takes no new one until some have. */
import { GatewayError } from "../errors.ts";
import type { Caller } from "./caller.ts";

const MAX_USED = 200_000;
const SWEEP_EVERY_MS = 10_000;

export class UsedTokens {
  /** Key and id of a token -> when it has expired for everybody. Two keys may give the same id. */
  readonly #untilMs = new Map<string, number>();
  #nextSweepMs = 0;

  has(caller: Caller): boolean {
    return this.#untilMs.has(nameOf(caller));
  }

  /** False where it was used before. Throws rate_limited where the list is full. */
  add(caller: Caller, { untilMs, nowMs }: { readonly untilMs: number; readonly nowMs: number }): boolean {
    const id = nameOf(caller);
    if (this.#untilMs.has(id)) return false;
    if (nowMs >= this.#nextSweepMs) this.#sweep(nowMs);
    if (this.#untilMs.size >= MAX_USED) {
      const message = `${MAX_USED} single-use tokens were used and have not expired: mint tokens that live shorter`;
      throw new GatewayError("rate_limited", message, { retryAfterMs: SWEEP_EVERY_MS });
    }
    this.#untilMs.set(id, untilMs);
    return true;
  }

  /** It was not used after all. */
  remove(caller: Caller): void {
    this.#untilMs.delete(nameOf(caller));
  }

  #sweep(nowMs: number): void {
    this.#nextSweepMs = nowMs + SWEEP_EVERY_MS;
    for (const [id, untilMs] of this.#untilMs) if (untilMs <= nowMs) this.#untilMs.delete(id);
  }
}

export function nameOf({ key, token }: Caller): string {
  return `${key?.id ?? ""} ${token?.id ?? ""}`;
}
