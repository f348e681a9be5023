/** How much was asked of the upstream and not heard yet: what an interruption would have paid for in vain. */

/** The text of a segment, and where it is spoken. */
export interface SpeculatedText {
  readonly chars: number;
  startTicks: number | null;
  endTicks: number | null;
}

export class Speculation {
  #texts: SpeculatedText[] = [];

  /** A segment is asked for. Its position on the timeline is set once it is known. */
  ask(chars: number): SpeculatedText {
    const text = { chars, startTicks: null, endTicks: null };
    this.#texts.push(text);
    return text;
  }

  /** It will not be heard. */
  withdraw(text: SpeculatedText): void {
    this.#texts = this.#texts.filter((other) => other !== text);
  }

  /** UTF-16 units of text that a listener at `playheadTicks` has not heard. */
  unheardChars(playheadTicks: number): number {
    while (this.#texts[0]?.endTicks != null && this.#texts[0].endTicks <= playheadTicks) this.#texts.shift();
    let chars = 0;
    for (const { chars: all, startTicks, endTicks } of this.#texts) {
      if (startTicks === null || endTicks === null || playheadTicks <= startTicks) chars += all;
      else chars += (all * Math.max(0, endTicks - playheadTicks)) / Math.max(1, endTicks - startTicks);
    }
    return chars;
  }
}
