/** How much of a response is timed by what came so far, taken or not: counted anew with each try of its request. */
import type { Synthesis, SynthesisHandlers, SynthesisRequest, Upstream } from "../upstream/types.ts";

export class TimingCount implements Upstream {
  readonly #upstream: Upstream;
  #chars = 0;

  /** For one request: asks it of `upstream`. */
  constructor(upstream: Upstream) {
    this.#upstream = upstream;
  }

  /** UTF-16 code units of the text that have a time. */
  get chars(): number {
    return this.#chars;
  }

  open(request: SynthesisRequest, handlers: SynthesisHandlers): Synthesis {
    this.#chars = 0;
    return this.#upstream.open(request, {
      requestSent: () => handlers.requestSent?.(),
      requestTurnedAway: () => handlers.requestTurnedAway?.(),
      head: (head) => handlers.head(head),
      chunk: (chunk) => {
        for (const character of chunk.alignment?.characters ?? []) this.#chars += character.length;
        handlers.chunk(chunk);
      },
      end: () => handlers.end(),
      error: (error) => handlers.error(error),
    });
  }
}
