/** The head of a phrase, as each of its readers is told it. */
import type { Clock } from "../../kit/clock.ts";
import type { SynthesisHead } from "../types.ts";

/** The upstream takes request ids of the last two hours; ten minutes for the text before the next. */
const REQUEST_ID_LIFE_MS = 110 * 60_000;

export class PhraseHead {
  readonly #clock: Clock;
  readonly #head: SynthesisHead;
  readonly #answeredMs: number;
  #isBilled = false;

  /** Made when the upstream answers. */
  constructor(head: SynthesisHead, clock: Clock) {
    this.#clock = clock;
    this.#head = head;
    this.#answeredMs = clock.nowMs();
  }

  /** For a further reader. The first has the bill and what else was true of the request; for the others nothing is billed. */
  take(): SynthesisHead {
    if (!this.#isBilled) {
      this.#isBilled = true;
      return this.#head;
    }
    const { requestId } = this.#head;
    const isKnown = this.#clock.nowMs() - this.#answeredMs < REQUEST_ID_LIFE_MS;
    return { characterCost: 0, ...(requestId === undefined || !isKnown ? {} : { requestId }) };
  }
}
