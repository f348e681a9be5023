/**
 * The times of spoken text as times of the text that the client sent. Where a span was replaced ("VW" spoken as
 * "voicewire"), its characters share the time of what stands for them and its words become one; what was taken out has
 * no time of its own.
 */
import type { MappedSpan } from "../text/prepare/spoken-map.ts";
import { type TimedCharacters, type TimedWord, weaker, widestBound } from "./timed.ts";

/** The correspondence of both texts; `text/spoken-text.ts` is the real one. */
interface TextCorrespondence {
  readonly client: string;
  readonly isSame: boolean;
  /** No text will follow. */
  readonly isEnded: boolean;
  spans(start: number, end: number, isLast?: boolean): readonly MappedSpan[];
  clientRange(start: number, end: number): { readonly start: number; readonly end: number };
}

interface Replaced {
  readonly start: number;
  readonly end: number;
  startSeconds: number;
  endSeconds: number;
}

/** One upstream response: offsets in are those of the whole spoken text, offsets out those of the client's. */
export class ClientTimes {
  readonly #text: TextCorrespondence;
  /** A replaced span whose spoken text may go on. */
  #replaced: Replaced | null = null;
  /** A word that may be part of a larger replacement. */
  #word: TimedWord | null = null;
  /** Where its text begins in the client's: what is before was emitted with the response before. */
  readonly #start: number;
  #end: number;
  #endSeconds = 0;

  /** `start`: where the response's text begins in the spoken one. */
  constructor(text: TextCorrespondence, start: number) {
    this.#text = text;
    this.#start = clientStartOf(text, start);
    this.#end = this.#start;
  }

  /** The client's characters that these settle, or null. `isLast`: nothing of this response follows. */
  characters(timed: TimedCharacters | null, isLast = false): TimedCharacters | null {
    if (this.#text.isSame) {
      // What the text has behind this may be changed yet.
      this.#end = timed?.end ?? this.#end;
      return timed;
    }
    const out = new Collected(this.#end);
    if (timed !== null) this.#walk(timed, out, isLast);
    if (isLast) this.#closeReplaced(out);
    this.#end = out.end;
    return out.taken(timed ?? { timing: "scaled" });
  }

  words(words: readonly TimedWord[], isLast = false): TimedWord[] {
    if (this.#text.isSame) return [...words];
    const out: TimedWord[] = [];
    for (const word of words) this.#takeWord(word, out);
    if (isLast && this.#word !== null) {
      out.push(this.#word);
      this.#word = null;
    }
    return out;
  }

  #walk(timed: TimedCharacters, out: Collected, isLast: boolean): void {
    let index = 0;
    let at = timed.start;
    // What is taken out at the end may go on, and is the next response's then.
    for (const span of this.#text.spans(timed.start, timed.end, isLast && this.#text.isEnded)) {
      const isGoingOn = this.#replaced !== null && this.#replaced.start === span.clientStart;
      if (!isGoingOn) this.#closeReplaced(out);
      const firstIndex = index;
      for (; index < timed.characters.length && at < span.spokenEnd; index += 1) {
        const character = timed.characters[index] ?? "";
        at += character.length;
        if (span.isSame) {
          out.add(character, timed.startSeconds[index] ?? 0, timed.endSeconds[index] ?? 0);
        }
      }
      if (index > firstIndex) this.#endSeconds = timed.endSeconds[index - 1] ?? this.#endSeconds;
      if (span.isSame || span.clientStart === span.clientEnd || span.clientStart < this.#start) continue;
      const startSeconds = index > firstIndex ? (timed.startSeconds[firstIndex] ?? 0) : this.#endSeconds;
      this.#replaced ??= {
        start: span.clientStart,
        end: span.clientEnd,
        startSeconds,
        endSeconds: startSeconds,
      };
      this.#replaced.endSeconds = Math.max(this.#replaced.startSeconds, this.#endSeconds);
    }
  }

  #closeReplaced(out: Collected): void {
    const replaced = this.#replaced;
    if (replaced === null) return;
    this.#replaced = null;
    const characters = [...this.#text.client.slice(replaced.start, replaced.end)];
    const each = (replaced.endSeconds - replaced.startSeconds) / Math.max(1, characters.length);
    characters.forEach((character, index) => {
      const start = replaced.startSeconds + index * each;
      out.add(character, start, start + each);
    });
    out.isScaled = true;
  }

  #takeWord(word: TimedWord, out: TimedWord[]): void {
    const spans = this.#text.spans(word.start, word.end).filter((span) => span.spokenEnd > span.spokenStart);
    const { start, end } = this.#text.clientRange(word.start, word.end);
    // A word that stands for nothing the client wrote (an inserted full stop has none, but a rule may insert).
    if (start >= end || start < this.#start) return;
    const held = this.#word;
    if (held !== null && start < held.end) {
      this.#word = this.#placed({
        ...held,
        end: Math.max(end, held.end),
        endSeconds: word.endSeconds,
        timing: weaker(held.timing, weaker(word.timing, "scaled")),
        ...widestBound([held, word]),
      });
      return;
    }
    if (held !== null) out.push(held);
    this.#word = null;
    const placed = this.#placed({ ...word, start, end });
    if (spans.every((span) => span.isSame)) out.push(placed);
    else this.#word = { ...placed, timing: weaker(word.timing, "scaled") };
  }

  #placed(word: TimedWord): TimedWord {
    return { ...word, text: this.#text.client.slice(word.start, word.end) };
  }
}

/** A replaced span that goes over `spoken` was emitted with what is before. */
function clientStartOf(text: TextCorrespondence, spoken: number): number {
  const [first] = text.spans(spoken, spoken + 1);
  if (first === undefined) return spoken;
  const before = spoken > 0 ? text.spans(spoken - 1, spoken).at(-1) : undefined;
  const isGoingOn = !first.isSame && before?.isSame === false && before.clientStart === first.clientStart;
  return isGoingOn ? first.clientEnd : first.clientStart;
}

/** Characters of the client's text in a row. */
class Collected {
  readonly #start: number;
  readonly #characters: string[] = [];
  readonly #startSeconds: number[] = [];
  readonly #endSeconds: number[] = [];
  end: number;
  isScaled = false;

  constructor(start: number) {
    this.#start = start;
    this.end = start;
  }

  add(character: string, startSeconds: number, endSeconds: number): void {
    this.#characters.push(character);
    this.#startSeconds.push(startSeconds);
    this.#endSeconds.push(endSeconds);
    this.end += character.length;
  }

  taken(from: Pick<TimedCharacters, "timing" | "boundSeconds">): TimedCharacters | null {
    if (this.#characters.length === 0) return null;
    return {
      start: this.#start,
      end: this.end,
      characters: this.#characters,
      startSeconds: this.#startSeconds,
      endSeconds: this.#endSeconds,
      timing: this.isScaled ? weaker(from.timing, "scaled") : from.timing,
      ...widestBound([from]),
    };
  }
}
