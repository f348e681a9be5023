/** Restores the order of the caller's voice, by the numbers that a carrier gives to its messages. */

function gap(missing: number): string {
  return `${missing} media ${missing === 1 ? "message is" : "messages are"} missing`;
}

/** Messages that wait for one that is late: 80 ms of 20 ms messages. */
const WINDOW = 4;
/** So many numbers below the expected one mean that the carrier counts from the start again, not that they are late. */
const RESTART_AFTER = 16;

interface InOrder {
  readonly audio: readonly Uint8Array[];
  readonly odd: string | null;
}

/**
 * For carriers that do not promise order (Telnyx): gives the pieces out by their numbers. A piece waits for an earlier
 * one until four wait; what comes after that, or twice, is dropped.
 */
export class MediaOrder {
  #next: number | null = null;
  #late = 0;
  readonly #waiting = new Map<number, Uint8Array>();

  /** Keeps `audio`, which has to be the caller's own. */
  push(chunk: number, audio: Uint8Array): InOrder {
    this.#next ??= chunk;
    if (chunk < this.#next) return this.#takeLate(chunk, audio);
    this.#late = 0;
    if (this.#waiting.has(chunk)) return { audio: [], odd: "a media message came twice" };
    this.#waiting.set(chunk, audio);
    if (this.#waiting.size <= WINDOW) return { audio: this.#release(), odd: null };
    const first = Math.min(...this.#waiting.keys());
    const missing = first - this.#next;
    this.#next = first;
    return { audio: this.#release(), odd: missing > 0 ? gap(missing) : null };
  }

  /** All that waits, in order. */
  flush(): readonly Uint8Array[] {
    const rest = [...this.#waiting].sort(([a], [b]) => a - b);
    this.#waiting.clear();
    this.#next = rest.length === 0 ? this.#next : (rest.at(-1)?.[0] ?? 0) + 1;
    return rest.map(([, audio]) => audio);
  }

  #takeLate(chunk: number, audio: Uint8Array): InOrder {
    this.#late += 1;
    if (this.#late < RESTART_AFTER) {
      return { audio: [], odd: this.#late === 1 ? "a media message came twice or too late" : null };
    }
    const rest = this.flush();
    this.#late = 0;
    this.#next = chunk + 1;
    return { audio: [...rest, audio], odd: "the numbers of the media messages start again" };
  }

  #release(): readonly Uint8Array[] {
    const released: Uint8Array[] = [];
    for (let next = this.#next ?? 0; ; next += 1) {
      const audio = this.#waiting.get(next);
      this.#next = next;
      if (audio === undefined) return released;
      this.#waiting.delete(next);
      released.push(audio);
    }
  }
}
