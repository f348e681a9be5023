/**
 * A process that stood still, as behind SIGSTOP or in a virtual machine that was moved: others may have taken its sessions over and
 * speak for them. It says nothing until the store has said whose each session is.
 */
import type { Clock, Timer } from "../kit/clock.ts";
import type { Logger } from "../kit/log.ts";

export interface StandstillOptions {
  readonly clock: Clock;
  readonly log: Logger;
  /** Ends the sessions that others own now. Rejects while the store can't be asked. */
  readonly verify: () => Promise<void>;
}

/** Others take a node for gone behind 3 s without a heartbeat, and the last one was sent up to half a second before. */
const STOOD_MS = 2000;
const LOOK_MS = 250;

export class Standstill {
  readonly #options: StandstillOptions;
  #ranAtMs: number;
  #isVerifying = false;
  #isClosed = false;
  #timer: Timer;

  constructor(options: StandstillOptions) {
    this.#options = options;
    this.#ranAtMs = options.clock.nowMs();
    this.#timer = this.#lookSoon();
  }

  /** Whether nothing may be said: asked before whatever is, since nobody knows which timer runs first behind a standstill. */
  isHeld(nowMs: number): boolean {
    if (!this.#isVerifying && nowMs - this.#ranAtMs >= STOOD_MS && !this.#isClosed) void this.#verify(nowMs);
    return this.#isVerifying;
  }

  /** Idempotent. */
  close(): void {
    this.#isClosed = true;
    this.#isVerifying = false;
    this.#timer.cancel();
  }

  #lookSoon(): Timer {
    const { clock } = this.#options;
    return clock.at(clock.nowMs() + LOOK_MS, () => {
      this.#timer = this.#lookSoon();
      const nowMs = clock.nowMs();
      if (!this.isHeld(nowMs)) this.#ranAtMs = nowMs;
    });
  }

  async #verify(nowMs: number): Promise<void> {
    const { clock, log, verify } = this.#options;
    this.#isVerifying = true;
    log.warn({ stood_ms: Math.round(nowMs - this.#ranAtMs) }, "The process stood still: sessions are held");
    while (this.#isVerifying) {
      try {
        await verify();
        break;
      } catch (thrown) {
        log.debug({ err: thrown }, "Owners of sessions could not be read: tried again");
        await new Promise<void>((resolve) => clock.at(clock.nowMs() + LOOK_MS, resolve));
      }
    }
    this.#ranAtMs = clock.nowMs();
    this.#isVerifying = false;
  }
}
