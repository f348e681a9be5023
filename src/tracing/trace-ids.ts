/** Ids of traces and spans (W3C Trace Context, section 3.2). */
import { randomFillSync } from "node:crypto";

/** Random ids. Many are drawn at once: a call to the system for each would cost more than the rest of a span. */
export class TraceIds {
  readonly #bytes = Buffer.alloc(4096);
  #used = this.#bytes.length;

  traceId(): string {
    return this.#draw(16);
  }

  spanId(): string {
    return this.#draw(8);
  }

  #draw(length: number): string {
    for (;;) {
      if (this.#used + length > this.#bytes.length) {
        randomFillSync(this.#bytes);
        this.#used = 0;
      }
      const id = this.#bytes.toString("hex", this.#used, this.#used + length);
      this.#used += length;
      if (!/^0+$/.test(id)) return id;
    }
  }
}
