/**
 * What a client's text becomes when it is spoken, as it grows: cleaned and with its replacements, or as it is; and the
 * way back from the one to the other.
 */
import type { TextOptions } from "../protocol/commands.ts";
import type { MappedSpan, SpokenMap } from "./prepare/spoken-map.ts";
import { TextPreparer } from "./prepare/text-preparer.ts";

export interface SpokenTextOptions extends TextOptions {
  /** Whether `[laughs]` is left out: the model would read it. */
  readonly dropsAudioTags?: boolean;
}

/** Where an audio tag may begin, and markup that may hold what looks like one. */
const MARKUP_START = /[<[]/;

/** Client's text in, spoken text out; where nothing is to be changed both are one, and nothing is kept. */
export class SpokenText {
  readonly #options: Required<SpokenTextOptions>;
  #preparer: TextPreparer | null = null;
  /** What the client sent so far. */
  client = "";
  /** What of it is settled, as it will be spoken. */
  spoken = "";
  isEnded = false;

  constructor({ clean = [], replacements = [], dropsAudioTags = false }: SpokenTextOptions) {
    this.#options = { clean, replacements, dropsAudioTags };
    if (clean.length > 0 || replacements.length > 0) this.#preparer = new TextPreparer(this.#options);
  }

  /** Whether every offset so far is the same in both texts. */
  get isSame(): boolean {
    return this.#preparer === null;
  }

  /** More of the client's text; returns the spoken text that it settles. */
  append(text: string): string {
    this.client += text;
    if (this.#preparer !== null) return this.#take(this.#preparer.push(text));
    if (!this.#options.dropsAudioTags || !MARKUP_START.test(text)) return this.#take(text);
    // Most texts have no tags and need no map. What came before the first has nothing to change and comes out as it was.
    this.#preparer = new TextPreparer(this.#options);
    return this.#take(this.#preparer.push(this.client).slice(this.spoken.length));
  }

  get #map(): SpokenMap | null {
    return this.#preparer?.map ?? null;
  }

  /** Text stands still: settles what reads as whole, after a `short` wait only what can hardly go on. */
  stall(wait: "short" | "long"): string {
    return this.#take(this.#preparer?.stall(wait) ?? "");
  }

  /** Nothing may be waited for: what was held back is settled unchanged. */
  flush(): string {
    return this.#take(this.#preparer?.flush() ?? "");
  }

  end(): string {
    this.isEnded = true;
    return this.#take(this.#preparer?.end() ?? "");
  }

  /** UTF-16 units of the client's text that wait for what follows them. */
  get heldChars(): number {
    return this.#preparer?.heldChars ?? 0;
  }

  /** Client's range of a range of the spoken text. */
  clientRange(start: number, end: number): { readonly start: number; readonly end: number } {
    return this.#map?.clientRange(start, end) ?? { start, end };
  }

  /** How the texts correspond from `start` to `end` of the spoken one. */
  spans(start: number, end: number, isLast = false): readonly MappedSpan[] {
    return (
      this.#map?.spans(start, end, isLast) ?? [
        { spokenStart: start, spokenEnd: end, clientStart: start, clientEnd: end, isSame: true },
      ]
    );
  }

  /** The last place up to `at` of the spoken text that is not inside a replaced span of `maxChars` at most. */
  placeBefore(at: number, maxChars: number): number {
    return this.#map?.placeBefore(at, maxChars) ?? at;
  }

  /** Client's text up to here has been spoken when the spoken text has up to `spoken`. */
  clientEnd(spoken: number): number {
    return spoken <= 0 ? 0 : this.clientRange(spoken - 1, spoken).end;
  }

  /** As `clientEnd`, but a replaced span counts only when all that stands for it has been spoken. */
  clientHeardEnd(spoken: number): number {
    const [last] = spoken > 0 ? this.spans(spoken - 1, spoken).slice(-1) : [];
    const [next] = this.spans(spoken, spoken + 1);
    const isInside =
      last?.isSame === false && next?.isSame === false && next.clientStart === last.clientStart;
    return isInside ? last.clientStart : this.clientEnd(spoken);
  }

  #take(spoken: string): string {
    this.spoken += spoken;
    return spoken;
  }
}
