/** Headings, list items and table rows pause at their end: a full stop where the line has none. */
import { isSpoken, KIND, type Kind, kindOf } from "../characters.ts";
import { codePointBefore } from "../code-points.ts";

/** Follows what is said on a line that wants a pause at its end. */
export class LineEnd {
  /** The last character that decides: no white space, no closing bracket or quote. 0 = nothing is said. */
  #last = 0;
  #isSaid = false;
  isWanted = false;

  start(isWanted: boolean): void {
    this.isWanted = isWanted;
    this.forget();
  }

  /** What was said so far is not waited for any more. */
  forget(): void {
    this.#last = 0;
    this.#isSaid = false;
  }

  get isSaid(): boolean {
    return this.#isSaid;
  }

  /** Whether what was said last is a mark of punctuation. */
  get endsInMark(): boolean {
    return isMark(kindOf(this.#last));
  }

  say(text: string): void {
    if (!this.isWanted) return;
    let isLastKnown = false;
    for (let i = text.length; i > 0 && !(isLastKnown && this.#isSaid); ) {
      const codePoint = codePointBefore(text, i);
      i -= codePoint > 0xffff ? 2 : 1;
      const kind = kindOf(codePoint);
      if (isPassedOver(kind)) continue;
      if (!isLastKnown) this.#last = codePoint;
      isLastKnown = true;
      this.#isSaid = this.#isSaid || isSpoken(kind) || kind === KIND.symbol;
    }
  }

  /** The full stop that is missing; "" = none. */
  get missing(): string {
    return this.isWanted && this.#isSaid && !this.endsInMark ? stopFor(this.#last) : "";
  }
}

function isPassedOver(kind: Kind): boolean {
  return kind <= KIND.extend || kind === KIND.close || kind === KIND.quote || kind === KIND.openQuote;
}

function isMark(kind: Kind): boolean {
  return kind >= KIND.dot && kind <= KIND.ellipsis;
}

const IDEOGRAPHIC = /[\p{scx=Han}\p{scx=Hira}\p{scx=Kana}\p{scx=Bopo}]/u;
const DANDA = /[\p{sc=Deva}\p{sc=Beng}\p{sc=Guru}\p{sc=Orya}]/u;

function stopFor(codePoint: number): string {
  const character = String.fromCodePoint(codePoint);
  if (codePoint < 0x80) return ".";
  if (IDEOGRAPHIC.test(character)) return "。";
  return DANDA.test(character) ? "।" : ".";
}
