/**
 * Takes a text piece by piece, in order and without holes, with what becomes of each piece. Says some words otherwise, and
 * writes down where each piece of what is said stands in the client's text.
 */
import type { Replacement } from "../../protocol/commands.ts";
import { codePointBefore } from "../code-points.ts";
import { readsAsWhole } from "./letters.ts";
import type { View } from "./match.ts";
import { RuleMatcher } from "./rule-matcher.ts";
import type { SpokenMap } from "./spoken-map.ts";

/** Units that may be taken out of a span that a rule still may match; behind that many the rules start afresh. */
const MAX_REMOVED = 1024;

/** A span of cleaned text and the client's text that it stands for. */
interface Span {
  length: number;
  clientLength: number;
  readonly isSame: boolean;
}

export class Replacer implements View {
  readonly #matcher: RuleMatcher;
  readonly #map: SpokenMap;
  /** Cleaned text that is not yet decided, and its spans. */
  text = "";
  isFinal = false;
  #spans: Span[] = [];
  #heldClient = 0;
  /** The code point before `text`; 0 = none, or a place that no match may span. */
  #before = 0;
  #removed = 0;
  #out = "";

  constructor(replacements: readonly Replacement[], map: SpokenMap) {
    this.#matcher = new RuleMatcher(replacements);
    this.#map = map;
  }

  /** UTF-16 units of the client's text that are held back. */
  get heldChars(): number {
    return this.#heldClient;
  }

  /** Stays as it is. */
  keep(text: string): void {
    if (this.#spans.length === 0 && this.#matcher.isQuiet(text, this.#before)) {
      this.#out += text;
      this.#map.addSame(text.length);
      this.#before = codePointBefore(text, text.length);
      return;
    }
    this.text += text;
    this.#add(text.length, text.length, true);
    this.#decide();
  }

  /** Becomes `spoken`, which is not empty; `clientLength` units, 0 = inserted. */
  put(spoken: string, clientLength: number): void {
    this.#countRemoved(clientLength);
    this.text += spoken;
    this.#add(spoken.length, clientLength, false);
    this.#decide();
    if (clientLength >= MAX_REMOVED) this.part();
  }

  /** Goes. */
  drop(clientLength: number): void {
    this.#countRemoved(clientLength);
    if (this.text === "") this.#map.addChange(0, clientLength);
    else this.#add(0, clientLength, false);
  }

  /** Markup for the speech service: stays as it is, and nothing may be replaced in it. */
  tag(text: string): void {
    this.part();
    this.#out += text;
    this.#map.addSame(text.length);
  }

  /** What stands before and what follows are apart: no replacement may span both. */
  part(): void {
    this.settle();
    this.#before = 0;
    this.#removed = 0;
  }

  /** Nothing is waited for. */
  settle(): void {
    this.isFinal = true;
    this.#decide();
    this.isFinal = false;
  }

  /** Text stands still for long: no longer match is waited for where what is held reads as whole. */
  stall(): void {
    if (readsAsWhole(this.text)) this.settle();
  }

  /** What was decided since the last call. */
  take(): string {
    const out = this.#out;
    this.#out = "";
    return out;
  }

  /** Counted over the whole text and not by call, so that a split makes no difference. */
  #countRemoved(length: number): void {
    const removed = this.#removed + length;
    if (removed >= MAX_REMOVED) this.part();
    this.#removed = removed % MAX_REMOVED;
  }

  #add(length: number, clientLength: number, isSame: boolean): void {
    this.#heldClient += clientLength;
    const last = this.#spans.at(-1);
    const isAlike = last?.isSame === isSame && (isSame || (length === 0 && last.length === 0));
    if (last && isAlike) {
      last.length += length;
      last.clientLength += clientLength;
    } else this.#spans.push({ length, clientLength, isSame });
  }

  #decide(): void {
    if (this.#spans.length === 0) return;
    let at = 0;
    while (at < this.text.length) {
      const before = at === 0 ? this.#before : codePointBefore(this.text, at);
      const { settled, match } = this.#matcher.search(this, at, before);
      const to = match === null ? at + this.#wholeLength(settled - at) : settled;
      this.#pass(at, to);
      at = to;
      if (match === null) break;
      this.#replace(match.end - match.start, match.rule.to);
      at = match.end;
    }
    if (at > 0) this.#before = codePointBefore(this.text, at);
    this.text = this.text.slice(at);
    if (this.text === "") this.#passRemoved();
  }

  /** How much of the next `length` units goes on before the rest is decided: what cleaning put there goes on in one. */
  #wholeLength(length: number): number {
    let whole = 0;
    for (const span of this.#spans) {
      if (whole + span.length > length) return span.isSame ? length : whole;
      whole += span.length;
    }
    return whole;
  }

  /** [from, to) stays as it is. */
  #pass(from: number, to: number): void {
    if (to > from) this.#out += this.text.slice(from, to);
    let left = to - from;
    while (left > 0) {
      const span = this.#spans[0];
      if (!span) break;
      const length = Math.min(left, span.length);
      if (span.isSame) this.#map.addSame(length);
      else this.#map.addChange(length, span.clientLength);
      this.#shorten(span, length);
      left -= length;
    }
  }

  /** The next `length` units are said as `spoken`; what was taken out among them is theirs. */
  #replace(length: number, spoken: string): void {
    this.#passRemoved();
    let left = length;
    let client = 0;
    while (left > 0) {
      const span = this.#spans[0];
      if (!span) break;
      const part = Math.min(left, span.length);
      client += span.isSame ? part : span.clientLength;
      this.#shorten(span, part);
      left -= part;
    }
    this.#out += spoken;
    this.#map.addChange(spoken.length, client);
  }

  #passRemoved(): void {
    for (let next = this.#spans[0]; next?.length === 0; next = this.#spans[0]) {
      this.#map.addChange(0, next.clientLength);
      this.#shorten(next, 0);
    }
  }

  /** Takes `length` units off the first span. A changed one gives its client's text to the first part. */
  #shorten(span: Span, length: number): void {
    const client = span.isSame ? length : span.clientLength;
    span.length -= length;
    span.clientLength -= client;
    this.#heldClient -= client;
    if (span.length === 0) this.#spans.shift();
  }
}
