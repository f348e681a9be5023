/**
 * Calls that a signature has brought. Twilio signs the URL only, so the same signature is good for every call: one that was
 * seen on its way could bring the same call once more.
 */
import { createHash } from "node:crypto";
import type { Clock } from "../../kit/clock.ts";

/** How long a call can't come a second time, ms. */
const KEPT_MS = 600_000;
/** The oldest are forgotten. */
const MAX_KEPT = 100_000;

export class SignedCalls {
  readonly #clock: Pick<Clock, "nowMs">;
  /** Digest of signature and call -> until when it is kept, ms; the oldest first. */
  readonly #untilMs = new Map<string, number>();

  constructor(clock: Pick<Clock, "nowMs">) {
    this.#clock = clock;
  }

  get count(): number {
    return this.#untilMs.size;
  }

  /** False where it came before. */
  add(signature: string, callId: string): boolean {
    const nowMs = this.#clock.nowMs();
    for (const [key, untilMs] of this.#untilMs) {
      if (untilMs > nowMs && this.#untilMs.size < MAX_KEPT) break;
      this.#untilMs.delete(key);
    }
    const key = createHash("sha256").update(`${signature} ${callId}`).digest("base64url");
    if (this.#untilMs.has(key)) return false;
    this.#untilMs.set(key, nowMs + KEPT_MS);
    return true;
  }
}
