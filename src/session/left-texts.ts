/** Texts that were still coming when their speaker's connection broke: open for a time, in case it comes back. */
import type { Clock, Timer } from "../kit/clock.ts";

export interface OpenTexts {
  /** Utterances whose text was begun and not ended. */
  readonly ids: ReadonlySet<string>;
  /** The one that text without an id goes on with. */
  readonly currentId: string | null;
}

/** What one connection has left; each has a text that is open, so there are no more than utterances. */
interface Left {
  readonly ids: Set<string>;
  readonly currentId: string | null;
  readonly timer: Timer;
}

export interface LeftTextsOptions {
  readonly clock: Clock;
  readonly waitMs: number;
  /** Nobody has come for these: their texts end as they stand. */
  readonly onGivenUp: (ids: Iterable<string>) => void;
}

export class LeftTexts {
  readonly #options: LeftTextsOptions;
  readonly #left = new Set<Left>();

  constructor(options: LeftTextsOptions) {
    this.#options = options;
  }

  /** Nothing where none is open. */
  keep({ ids, currentId }: OpenTexts): void {
    if (ids.size === 0) return;
    const { clock, waitMs, onGivenUp } = this.#options;
    const left: Left = {
      ids: new Set(ids),
      currentId,
      timer: clock.at(clock.nowMs() + waitMs, () => {
        this.#left.delete(left);
        onGivenUp(left.ids);
      }),
    };
    this.#left.add(left);
  }

  /** A connection has come back: what it left. null where it is not known whose texts they are: more than one is away. */
  takeBack(): OpenTexts | null {
    const [left, other] = this.#left;
    if (left === undefined || other !== undefined) return null;
    this.#forget(left);
    return left;
  }

  /** Somebody goes on with this very text; whether it was left. */
  takeOne(id: string): boolean {
    for (const left of this.#left) {
      if (!left.ids.delete(id)) continue;
      if (left.ids.size === 0) this.#forget(left);
      return true;
    }
    return false;
  }

  /** Idempotent. */
  close(): void {
    for (const left of [...this.#left]) this.#forget(left);
  }

  #forget(left: Left): void {
    left.timer.cancel();
    this.#left.delete(left);
  }
}
