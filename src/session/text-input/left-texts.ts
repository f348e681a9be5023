/** Texts that were still coming when their speaker's connection broke: open for a time, in case it comes back. */
import type { Clock, Timer } from "../../kit/clock.ts";

export interface OpenTexts {
  /** Utterances whose text was begun and not ended. */
  readonly ids: ReadonlySet<string>;
  /** The one that text without an id goes on with. */
  readonly currentId: string | null;
}

/** A speaker that is away, with or without texts of its own. */
interface Left {
  readonly names: readonly string[];
  readonly ids: Set<string>;
  readonly currentId: string | null;
  readonly timer: Timer;
}

export interface LeftTextsOptions {
  readonly clock: Clock;
  readonly waitMs: number;
  /** So many speakers are waited for at most: one more, and the one that is away longest is given up. */
  readonly maxSpeakers: number;
  /** Nobody has come for these: their texts end unchanged. */
  readonly onGivenUp: (ids: Iterable<string>) => void;
}

export class LeftTexts {
  readonly #options: LeftTextsOptions;
  readonly #left = new Set<Left>();

  constructor(options: LeftTextsOptions) {
    this.#options = options;
  }

  /** A speaker has gone, known by any of these ids; one without open texts counts, too: who comes back may be that one. */
  keep(names: readonly string[], { ids, currentId }: OpenTexts): void {
    const { clock, waitMs, maxSpeakers } = this.#options;
    const left: Left = {
      names,
      ids: new Set(ids),
      currentId,
      timer: clock.at(clock.nowMs() + waitMs, () => this.#giveUp(left)),
    };
    this.#left.add(left);
    const [longest] = this.#left;
    if (longest !== undefined && this.#left.size > maxSpeakers) this.#giveUp(longest);
  }

  /** A speaker has come back: what it left; null where that is over. `listenerId`: who it was. */
  takeBack(listenerId: string): OpenTexts | null {
    const left = [...this.#left].find((each) => each.names.includes(listenerId));
    if (left === undefined) return null;
    this.#forget(left);
    return left;
  }

  /** Somebody goes on with this very text; whether it was left. */
  takeOne(id: string): boolean {
    for (const left of this.#left) {
      if (left.ids.delete(id)) return true;
    }
    return false;
  }

  /** Idempotent. */
  close(): void {
    for (const left of [...this.#left]) this.#forget(left);
  }

  #giveUp(left: Left): void {
    this.#forget(left);
    this.#options.onGivenUp(left.ids);
  }

  #forget(left: Left): void {
    left.timer.cancel();
    this.#left.delete(left);
  }
}
