/** What must stay in one piece: tags, and short elements such as `<sub alias="...">WHO</sub>`, from end to end. */
import { ATOMIC_ELEMENTS, readTag } from "./markup.ts";

interface Span {
  readonly start: number;
  readonly end: number;
}

interface OpenElement {
  readonly name: string;
  readonly start: number;
}

/** Offsets are UTF-16, into all text; `end` exclusive. Memory is bounded by the tags since `forget`. */
export class AtomicSpans {
  readonly #maxChars: number;
  /** From the outermost in; each starts less than `#maxChars` back. */
  #open: OpenElement[] = [];
  /** Disjoint and rising. */
  #spans: Span[] = [];

  /** `maxChars`: an element longer than this is text like any other, UTF-16 code units. */
  constructor(maxChars: number) {
    this.#maxChars = maxChars;
  }

  /** Where the outermost element starts that is not closed yet; Infinity = none. */
  get openAt(): number {
    return this.#open.length === 0 ? Number.POSITIVE_INFINITY : (this.#open[0]?.start ?? 0);
  }

  /** A whole tag. */
  tag(text: string, start: number, end: number): void {
    this.#spans.push({ start, end });
    const tag = readTag(text);
    if (tag === null || !ATOMIC_ELEMENTS.has(tag.name)) return;
    if (tag.role === "opening") this.#open.push({ name: tag.name, start });
    else if (tag.role === "closing") this.#close(tag.name, end);
  }

  /** The text has come to `offset`: elements that got too long are let go. */
  advance(offset: number): void {
    while (offset - this.openAt > this.#maxChars) this.#open.shift();
  }

  /** The last place up to `at` where nothing whole is cut: `at` itself, or the start of what holds it. */
  placeBefore(at: number): number {
    for (let i = this.#spans.length - 1; i >= 0; i--) {
      const span = this.#spans[i];
      if (span === undefined || span.end <= at) break;
      if (span.start < at) return Math.min(span.start, this.openAt);
    }
    return Math.min(at, this.openAt);
  }

  /** Nothing before `offset` is asked for any more. */
  forget(offset: number): void {
    if ((this.#spans[0]?.end ?? offset) < offset) this.#spans = this.#spans.filter(({ end }) => end > offset);
    if (this.openAt < offset) this.#open = this.#open.filter(({ start }) => start >= offset);
  }

  #close(name: string, end: number): void {
    const index = this.#open.findLastIndex((element) => element.name === name);
    const start = this.#open[index]?.start;
    if (start === undefined) return;
    this.#open.length = index;
    if (end - start > this.#maxChars) return;
    while ((this.#spans.at(-1)?.start ?? -1) >= start) this.#spans.pop();
    this.#spans.push({ start, end });
  }
}
