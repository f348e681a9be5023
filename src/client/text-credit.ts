/** Which utterances' text runs ahead of their speech, by the gateway's `paused` and `resumed`. */
import type { Event } from "../protocol/events.ts";
import type { VoicewireError } from "./client-error.ts";

interface Waiter {
  readonly utteranceId: string | undefined;
  resolve(): void;
  reject(error: VoicewireError): void;
}

export class TextCredit {
  readonly #paused = new Set<string>();
  #waiters: Waiter[] = [];
  #isAway = false;

  /** Whether one utterance is paused, or any; all are while the socket is gone. */
  isPaused(utteranceId?: string): boolean {
    if (this.#isAway) return true;
    return utteranceId === undefined ? this.#paused.size > 0 : this.#paused.has(utteranceId);
  }

  /** Resolves when more text may be sent: at once unless it is paused. Who ignores its rejection gets no `unhandledrejection`. */
  ready(utteranceId?: string): Promise<void> {
    if (!this.isPaused(utteranceId)) return Promise.resolve();
    const ready = new Promise<void>((resolve, reject) => {
      this.#waiters.push({ utteranceId, resolve, reject });
    });
    ready.catch(() => undefined);
    return ready;
  }

  take(event: Event): void {
    if (event.type === "paused") this.#paused.add(event.utterance_id);
    // A text that is over wants no more of it: whoever waits may find out.
    if (event.type !== "resumed" && event.type !== "utterance.done") return;
    this.#paused.delete(event.utterance_id);
    const waiters = this.#waiters;
    this.#waiters = waiters.filter((waiter) => this.isPaused(waiter.utteranceId));
    for (const waiter of waiters) if (!this.#waiters.includes(waiter)) waiter.resolve();
  }

  /** The socket is gone, and with it what the gateway said on it. */
  away(): void {
    this.#isAway = true;
    this.#paused.clear();
  }

  /** Another socket is there: the gateway pauses again what has to wait. */
  back(): void {
    this.#isAway = false;
    const waiters = this.#waiters;
    this.#waiters = [];
    for (const waiter of waiters) waiter.resolve();
  }

  /** No other socket comes. */
  failAll(error: VoicewireError): void {
    const waiters = this.#waiters;
    this.#waiters = [];
    this.#isAway = false;
    this.#paused.clear();
    for (const waiter of waiters) waiter.reject(error);
  }
}
