/**
 * A client's text as captions show it: what is taken out of it for speaking is not there, what is said in other words
 * stands as the client wrote it, and marks stand as they are said (a full stop behind a heading). Offsets are UTF-16:
 * the client's in the whole text, those of what is shown from where it begins.
 */
import type { MappedSpan } from "./prepare/spoken-map.ts";

/** `isSame`: both sides hold the same characters; else it is shown as a whole, or as nothing. */
interface Span {
  readonly shownStart: number;
  readonly clientStart: number;
  readonly clientEnd: number;
  readonly isSame: boolean;
}

const WORDS = /[\p{L}\p{N}]/u;
/** Cues leave them out themselves, with the space that belongs to them. */
const AUDIO_TAGS = /^(?:\[\p{L}[^[\]\n]*\]\s*)+$/u;

export class ShownText {
  readonly #clientBase: number;
  /** In order, without holes on either side. */
  readonly #spans: Span[] = [];
  text = "";

  /** `clientBase`: where in the client's text it begins. */
  constructor(clientBase: number) {
    this.#clientBase = clientBase;
  }

  /** Where in the client's text the next span begins. */
  get clientEnd(): number {
    return this.#spans.at(-1)?.clientEnd ?? this.#clientBase;
  }

  /** Takes the next span of both texts, of which a part may be there already; returns what is shown of it. */
  append(span: MappedSpan, { client, spoken }: { readonly client: string; readonly spoken: string }): string {
    const clientStart = this.clientEnd;
    const clientEnd = Math.max(span.clientEnd, clientStart);
    const written = client.slice(clientStart, clientEnd);
    const said = spoken.slice(span.spokenStart, span.spokenEnd);
    const isSame = span.isSame || WORDS.test(said) || (said === "" && AUDIO_TAGS.test(written));
    const shown = isSame ? written : said;
    const last = this.#spans.at(-1);
    if (last?.isSame && isSame) this.#spans.splice(-1, 1, { ...last, clientEnd });
    else this.#spans.push({ shownStart: this.text.length, clientStart, clientEnd, isSame });
    this.text += shown;
    return shown;
  }

  /** Where a word stands that the client has at [start, end): without marks at its ends that are not shown. */
  wordAt(start: number, end: number): { readonly start: number; readonly end: number } {
    const from = this.#spans.findLast(({ clientStart }) => clientStart <= start);
    const to = this.#spans.findLast(({ clientStart }) => clientStart < end);
    const shownStart = from === undefined ? 0 : this.#placeIn(from, start, this.#endOf(from));
    const shownEnd = to === undefined ? 0 : this.#placeIn(to, end, to.shownStart);
    return { start: shownStart, end: Math.max(shownStart, shownEnd) };
  }

  /** `otherwise`: where neither side is the other. */
  #placeIn({ shownStart, clientStart, isSame }: Span, client: number, otherwise: number): number {
    return isSame ? shownStart + client - clientStart : otherwise;
  }

  #endOf(span: Span): number {
    return this.#spans[this.#spans.indexOf(span) + 1]?.shownStart ?? this.text.length;
  }
}
