/** The utterance that was interrupted last, for `resume`: kept for a time, and only the latest. */
import { GatewayError } from "../../errors.ts";
import type { Clock, Timer } from "../../kit/clock.ts";
import type { Utterance } from "../playback/utterance.ts";
import type { Snapshot } from "./snapshot.ts";

/** Ids of interrupted utterances that are gone. */
const REMEMBERED_IDS = 64;

export class KeptUtterance {
  readonly #clock: Clock;
  readonly #lifeMs: number;
  #kept: Snapshot | null = null;
  /** The latest ones that were interrupted and can't go on, oldest first. */
  readonly #gone = new Set<string>();
  /** The one that was heard and interrupted last, and did not go on since. */
  #latestId: string | null = null;
  #timer: Timer | null = null;

  constructor(clock: Clock, lifeMs: number) {
    this.#clock = clock;
    this.#lifeMs = lifeMs;
  }

  /** The utterance whose text may still grow while it waits to go on. */
  find(id: string): Utterance | undefined {
    return this.#kept?.utterance.id === id ? this.#kept.utterance : undefined;
  }

  /** Keeps it, in place of what was kept before; true where it can go on. */
  keep({ id }: Utterance, kept: Snapshot | null): boolean {
    this.#drop();
    this.noteGone(id);
    this.#latestId = id;
    if (kept === null || this.#lifeMs === 0) return false;
    this.#kept = kept;
    this.#timer = this.#clock.at(this.#clock.nowMs() + this.#lifeMs, () => this.#drop());
    return true;
  }

  /** It was interrupted and nothing of it is kept. */
  noteGone(utteranceId: string): void {
    this.#gone.delete(utteranceId);
    this.#gone.add(utteranceId);
    for (const oldest of this.#gone) {
      if (this.#gone.size <= REMEMBERED_IDS) break;
      this.#gone.delete(oldest);
    }
  }

  /** Throws nothing_to_resume, resume_expired. */
  take(id: string | undefined): Snapshot {
    const kept = this.#kept;
    if (kept !== null && (id === undefined || kept.utterance.id === id)) {
      this.#drop();
      this.#gone.delete(kept.utterance.id);
      this.#latestId = null;
      return kept;
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
    this.#drop();
  }

  #drop(): void {
    this.#timer?.cancel();
    this.#timer = null;
    this.#kept = null;
  }
}
