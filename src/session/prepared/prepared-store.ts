/**
 * What clients have sent ahead, or had synthesized ahead, to be played later and at once: sounds and speech, by their ids. It is
 * of one session, and let go when it was not played for `prepared-ms`.
 */
import { GatewayError } from "../../errors.ts";
import type { Timer } from "../../kit/clock.ts";
import type { SessionDeps } from "../session-deps.ts";
import { roomFor } from "../sound.ts";
import type { Prepared } from "./prepared-audio.ts";

/** Most that one session may have, those that are still being made included. */
const MAX_PREPARED = 64;
/** Most that are being made at once. */
const MAX_PREPARING = 4;

interface Entry {
  /** null: it is on its way. */
  what: Prepared | null;
  /** Gives its memory back; taken anew as it grows. */
  release: () => void;
  /** Stops what is on its way. */
  stop: () => void;
  timer: Timer | null;
  /** Utterances that say it. */
  users: number;
  isDropped: boolean;
}

export class PreparedStore {
  readonly #deps: SessionDeps;
  readonly #entries = new Map<string, Entry>();
  #count = 0;

  constructor(deps: SessionDeps) {
    this.#deps = deps;
  }

  /** Room for one more under an id: the client's own, which replaces what was there, or a new one. Throws sounds_full. */
  begin(wantedId: string | undefined, kind: "sound" | "speech"): string {
    this.#count += 1;
    const id = wantedId ?? `p${this.#count}`;
    const others = [...this.#entries].filter(([other]) => other !== id);
    const preparing = others.filter(([, { what }]) => what === null).length;
    if (others.length >= MAX_PREPARED || (kind === "speech" && preparing >= MAX_PREPARING)) {
      const limit = others.length >= MAX_PREPARED ? `${MAX_PREPARED} are kept` : `${MAX_PREPARING} are made`;
      throw new GatewayError("sounds_full", `Nothing more can be prepared: ${limit}, which is the limit`, {
        retryAfterMs: 1000,
      });
    }
    this.drop(id);
    const none = (): void => undefined;
    this.#entries.set(id, { what: null, release: none, stop: none, timer: null, users: 0, isDropped: false });
    return id;
  }

  /** How to stop what is on its way, and give back what it holds. */
  stopBy(id: string, stop: () => void): void {
    const entry = this.#entries.get(id);
    if (entry === undefined) stop();
    else entry.stop = stop;
  }

  /** It takes so many bytes by now. Throws sounds_full. */
  grow(id: string, bytes: number): void {
    const entry = this.#entries.get(id);
    if (entry === undefined) return;
    entry.release();
    entry.release = () => undefined;
    entry.release = roomFor(bytes, this.#deps.sounds);
  }

  /** It is there, and is kept until it was not played for `prepared-ms`. */
  keep(id: string, what: Prepared): void {
    const entry = this.#entries.get(id);
    if (entry === undefined) return;
    entry.what = what;
    this.#restartTimer(id, entry);
  }

  /** For an utterance that says it; `done` is called when that is over, once or more. Throws not_prepared. */
  use(id: string): { readonly what: Prepared; readonly done: () => void } {
    const entry = this.#entries.get(id);
    if (entry === undefined || entry.what === null) {
      const why = entry === undefined ? "it expired, failed or never was" : "it is on its way";
      throw new GatewayError("not_prepared", `Nothing is prepared under ${id}: ${why}`, {
        field: "prepared_id",
      });
    }
    this.#restartTimer(id, entry);
    entry.users += 1;
    let isDone = false;
    const done = (): void => {
      if (isDone) return;
      isDone = true;
      entry.users -= 1;
      if (entry.isDropped && entry.users === 0) entry.release();
    };
    return { what: entry.what, done };
  }

  /** What is being said of it is said to its end. Idempotent. */
  drop(id: string): void {
    const entry = this.#entries.get(id);
    if (entry === undefined) return;
    this.#entries.delete(id);
    entry.timer?.cancel();
    entry.stop();
    entry.isDropped = true;
    if (entry.users === 0) entry.release();
  }

  /** Idempotent. */
  close(): void {
    for (const id of [...this.#entries.keys()]) this.drop(id);
  }

  #restartTimer(id: string, entry: Entry): void {
    const { clock, settings } = this.#deps;
    entry.timer?.cancel();
    entry.timer = clock.at(clock.nowMs() + settings.preparedMs, () => {
      if (this.#entries.get(id) === entry) this.drop(id);
    });
  }
}
