/**
 * Makes a client's text, which comes in any pieces, ready for speaking: takes out what is written to be seen (Markdown,
 * code, addresses, emoji), then applies replacement rules, and keeps a map back to the client's own text.
 *
 * Tags (`<break time="1s"/>`) pass untouched, and so does `[laughs]` unless it is to go. Any split of a text between its code points gives the
 * same spoken text and the same map. Time is linear in the text.
 */
import type { Replacement } from "../../protocol/commands.ts";
import type { Cleaning } from "../../protocol/vocabulary.ts";
import { Cleaner } from "./cleaner.ts";
import { Replacer } from "./replacer.ts";
import { SpokenMap } from "./spoken-map.ts";

export interface PrepareOptions {
  readonly clean: readonly Cleaning[];
  /** At each place the longest match counts, of several as long the first rule's; no rule sees what another put there. */
  readonly replacements: readonly Replacement[];
  /** Whether `[laughs]` is left out: the model would read it. Default: it stays. */
  readonly dropsAudioTags?: boolean;
}

export class TextPreparer {
  /** What is settled so far. */
  readonly map = new SpokenMap();
  readonly #replacer: Replacer;
  readonly #cleaner: Cleaner;

  constructor({ clean, replacements, dropsAudioTags = false }: PrepareOptions) {
    this.#replacer = new Replacer(replacements, this.map);
    this.#cleaner = new Cleaner(clean, this.#replacer, dropsAudioTags);
  }

  /** UTF-16 units of the client's text that are held back: at most 4096. */
  get heldChars(): number {
    return this.#cleaner.heldChars + this.#replacer.heldChars;
  }

  /** The spoken text that this settles; "" while something may still become markup, an address, a rule's match. */
  push(text: string): string {
    this.#cleaner.push(text);
    return this.#replacer.take();
  }

  /**
   * Text stands still and is to be spoken as far as it is there: settles what may be taken to be whole, the more the
   * longer the wait was. Half a word and markup that is open stay held, so that what follows still counts for them.
   */
  stall(wait: "short" | "long"): string {
    this.#cleaner.stall(wait);
    if (wait === "long") this.#replacer.stall();
    return this.#replacer.take();
  }

  /** The text pauses here: decides what hung on what would follow; more may come. */
  flush(): string {
    return this.#finish("pause");
  }

  /** Nothing follows. */
  end(): string {
    return this.#finish("end");
  }

  #finish(following: "pause" | "end"): string {
    this.#cleaner.finish(following);
    this.#replacer.settle();
    return this.#replacer.take();
  }
}
