/** Emits who is there: at once where one comes or goes, bundled where many do. */
import type { Clock, Timer } from "../../kit/clock.ts";
import type { PresenceEvent } from "../../protocol/events.ts";

/** At most one event in this time: ten thousand that join at once are not ten thousand events for each of them. */
const BUNDLE_MS = 250;

export type PresenceNews = Pick<PresenceEvent, "joined" | "left" | "listeners" | "speakers">;

export interface PresenceOptions {
  readonly clock: Clock;
  readonly count: () => { readonly listeners: number; readonly speakers: number };
  readonly emit: (news: PresenceNews) => void;
}

export class Presence {
  readonly #options: PresenceOptions;
  #timer: Timer | null = null;
  #lastMs = Number.NEGATIVE_INFINITY;
  #changes: { readonly joined?: string; readonly left?: string }[] = [];

  constructor(options: PresenceOptions) {
    this.#options = options;
  }

  changed(change: { readonly joined?: string; readonly left?: string }): void {
    if (this.#changes.length < 2) this.#changes.push(change);
    if (this.#timer !== null) return;
    const { clock } = this.#options;
    const dueMs = this.#lastMs + BUNDLE_MS;
    if (clock.nowMs() >= dueMs) this.#emit();
    else this.#timer = clock.at(dueMs, () => this.#emit());
  }

  /** Idempotent. */
  close(): void {
    this.#timer?.cancel();
    this.#timer = null;
  }

  #emit(): void {
    this.#timer = null;
    this.#lastMs = this.#options.clock.nowMs();
    const [only] = this.#changes;
    const named = this.#changes.length === 1 ? only : {};
    this.#changes = [];
    this.#options.emit({ ...named, ...this.#options.count() });
  }
}
