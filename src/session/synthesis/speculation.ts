/** How much was asked of the upstream and not heard yet: what an interruption would have paid for in vain. */

interface Asked {
  readonly chars: number;
  startTicks: number | null;
  endTicks: number | null;
}

export class Speculation {
  #asked: Asked[] = [];

  /** A segment is asked for. Its position on the timeline is set once it is known. */
  ask(chars: number): Asked {
    const asked = { chars, startTicks: null, endTicks: null };
    this.#asked.push(asked);
    return asked;
  }

  /** It will not be heard. */
  withdraw(asked: Asked): void {
    this.#asked = this.#asked.filter((other) => other !== asked);
  }

  /** UTF-16 units of text that a listener at `playheadTicks` has not heard. */
  unheardChars(playheadTicks: number): number {
    while (this.#asked[0]?.endTicks != null && this.#asked[0].endTicks <= playheadTicks) this.#asked.shift();
    let chars = 0;
    for (const { chars: all, startTicks, endTicks } of this.#asked) {
      if (startTicks === null || endTicks === null || playheadTicks <= startTicks) chars += all;
      else chars += (all * Math.max(0, endTicks - playheadTicks)) / Math.max(1, endTicks - startTicks);
    }
    return chars;
  }
}

export type { Asked };
