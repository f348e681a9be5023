/** Which utterance `resume` goes on with: the one that was interrupted last, for a time. */
import { GatewayError } from "../../errors.ts";
import type { Clock, Timer } from "../../kit/clock.ts";
import type { Snapshot, Utterance } from "../playback/utterance.ts";

/** Ids of interrupted utterances that can't go on. */
const REMEMBERED_IDS = 64;

export class InterruptedUtterances {
  readonly #clock: Clock;
  readonly #lifeMs: number;
  readonly #onExpired: (utterance: Utterance) => void;
  /** The one that was heard and interrupted last, while it can go on. */
  #latest: Utterance | null = null;
  /** Its id, until it goes on. */
  #latestId: string | null = null;
  /** The latest ones that were interrupted, oldest first. */
  readonly #gone = new Set<string>();
  #timer: Timer | null = null;

  /** `lifeMs` 0: none is kept. `onExpired`: an utterance can't go on any more. */
  constructor(clock: Clock, lifeMs: number, onExpired: (utterance: Utterance) => void) {
    this.#clock = clock;
    this.#lifeMs = lifeMs;
    this.#onExpired = onExpired;
  }

  /** Whether anything is kept at all. */
  get isKept(): boolean {
    return this.#lifeMs > 0;
  }

  /** The one that can go on; null: there is none. */
  get latest(): Utterance | null {
    return this.#latest;
  }

  /** The utterance whose text may still grow while it waits to go on. */
  find(id: string): Utterance | undefined {
    return this.#latest?.id === id ? this.#latest : undefined;
  }

  /** It was heard and interrupted: it takes the place of the one before. */
  noteInterrupted(utterance: Utterance): void {
    this.#expire();
    this.noteGone(utterance);
    this.#latestId = utterance.id;
    if (utterance.state.kind !== "interrupted" || utterance.state.snapshot === null) return;
    this.#latest = utterance;
    this.#timer = this.#clock.at(this.#clock.nowMs() + this.#lifeMs, () => this.#expire());
  }

  /** It was interrupted and nothing of it is kept. */
  noteGone({ id }: Utterance): void {
    this.#gone.delete(id);
    this.#gone.add(id);
    for (const oldest of this.#gone) {
      if (this.#gone.size <= REMEMBERED_IDS) break;
      this.#gone.delete(oldest);
    }
  }

  /** Throws nothing_to_resume, resume_expired. */
  take(id: string | undefined): { readonly utterance: Utterance; readonly snapshot: Snapshot } {
    const latest = this.#latest;
    const snapshot = latest?.state.kind === "interrupted" ? latest.state.snapshot : null;
    if (latest !== null && snapshot !== null && (id === undefined || latest.id === id)) {
      this.#cancelTimer();
      this.#gone.delete(latest.id);
      this.#latest = null;
      this.#latestId = null;
      return { utterance: latest, snapshot };
    }
    if (id === undefined ? this.#latestId !== null : this.#gone.has(id)) {
      const what = id ?? "the interrupted utterance";
      throw new GatewayError(
        "resume_expired",
        `Audio of ${what} is gone: speak the unheard_text of its receipt instead`,
        { field: "utterance_id" },
      );
    }
    throw new GatewayError("nothing_to_resume", "Nothing to resume: no utterance was interrupted");
  }

  /** Idempotent. */
  close(): void {
    this.#expire();
  }

  /** What is kept of it is let go. */
  #expire(): void {
    this.#cancelTimer();
    const latest = this.#latest;
    this.#latest = null;
    if (latest !== null) this.#onExpired(latest);
  }

  #cancelTimer(): void {
    this.#timer?.cancel();
    this.#timer = null;
  }
}
