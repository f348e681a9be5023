/**
 * Where a text may be cut for speaking, and how good each place is. Character by character and without looking at
 * chunk borders, so any split of a text reports the same boundaries at the same characters.
 */
import { stopMeaning } from "./abbreviations.ts";
import { isFlagHalf, isSpoken, isWordKind, KIND, type Kind, kindOf, unitsOf } from "./characters.ts";
import { TagGate } from "./markup.ts";
import {
  endsSentence,
  LIST_MARKER,
  LONE_CLOSER,
  LONE_DASH,
  NUMBER_MARKER,
  newPunctuation,
  type Punctuation,
  punctuationAfter,
  rankAtEnd,
  verdictOf,
  verdictOfWord,
} from "./punctuation.ts";

/** From best to worst. `weak`: after "Dr." or between initials: only where nothing else is left. */
export type BoundaryRank = "sentence" | "clause" | "word" | "weak";

export interface Boundary {
  readonly rank: BoundaryRank;
  /** UTF-16 offset of the first character behind the cut; white space stays before it. */
  readonly at: number;
  /** End of the last letter, digit or emoji before the cut. */
  readonly spokenEnd: number;
  /** A blank line stands before it. */
  readonly isParagraph: boolean;
}

/** Longest token that is compared with the lists of abbreviations. */
const MAX_TOKEN = 24;
const LESS = 0x3c;
const SLASH = 0x2f;

/** The boundaries of a text that grows, for those who don't cut it: captions. */
export class BoundaryFinder {
  #found: Boundary[] = [];
  readonly #scanner = new BoundaryScanner((boundary) => this.#found.push(boundary));
  /** Offset behind the text that was pushed. */
  #end = 0;

  /** What this text decides; a sentence end is known once the next word has begun. */
  push(text: string): Boundary[] {
    for (let at = 0; at < text.length; ) {
      const passed = this.#scanner.passLetters(text, at, this.#end + at);
      at += passed;
      if (passed > 0) continue;
      const codePoint = text.codePointAt(at) ?? 0;
      this.#scanner.step(codePoint, this.#end + at);
      at += unitsOf(codePoint);
    }
    this.#end += text.length;
    return this.#found.splice(0);
  }
}

export class BoundaryScanner {
  readonly #report: (boundary: Boundary) => void;
  readonly #reportTag: (start: number, end: number) => void;
  readonly #gate = new TagGate(
    {
      character: (codePoint, index) => this.#character(codePoint, index),
      tag: (start, end) => this.#tag(start, end),
    },
    { hasBracketTags: true },
  );
  #punctuation: Punctuation | null = null;
  #token = "";
  #tokenAt = 0;
  #tokenSpokenEnd = 0;
  /** What the token began with: a new line, or at least a place where "1." numbers a list. */
  #tokenPlace: "line" | "sentence" | "inside" = "sentence";
  #isAfterSpace = true;
  #newlines = 0;
  #isAtStart = true;
  #spokenEnd = 0;
  #lastSpoken: Kind = KIND.space;
  /** The letter, digit or emoji that ends at `#spokenEnd`. */
  #lastCodePoint = 0;
  #unspacedEnd = 0;
  #isAfterMarker = false;
  /** Ends of characters that make one picture with what must follow, the last of each: -1 = none. */
  #joinerEnd = -1;
  #flagHalfEnd = -1;
  /** Where the last `<` stood, and the last `</`. */
  #lessAt = -1;
  #closingAt = -1;

  /**
   * `report` may be called with places some characters back, and out of order between ranks; `reportTag` with each
   * whole tag, `end` exclusive.
   */
  constructor(
    report: (boundary: Boundary) => void,
    reportTag: (start: number, end: number) => void = () => undefined,
  ) {
    this.#report = report;
    this.#reportTag = reportTag;
  }

  /** How far the text is settled: up to what may become a tag. `offset` is the end of the text so far. */
  settledTo(offset: number): number {
    return this.#gate.settledTo(offset);
  }

  get isAfterSpace(): boolean {
    return this.#isAfterSpace;
  }

  /** End of the last letter of a script without spaces; 0 = none yet. */
  get unspacedEnd(): number {
    return this.#unspacedEnd;
  }

  step(codePoint: number, index: number): void {
    if (codePoint === LESS) this.#lessAt = index;
    else if (codePoint === SLASH && index === this.#lessAt + 1) this.#closingAt = this.#lessAt;
    if (this.#gate.passes(codePoint)) this.#character(codePoint, index);
    else this.#gate.step(codePoint, index);
  }

  /**
   * Takes letters and digits that go on with a word, as `step` would, but without asking what each of them decides: they
   * decide nothing. `index`: offset of `text[from]`; `max`: most UTF-16 units. Returns how many it took, 0 and more.
   */
  passLetters(text: string, from: number, index: number, max = Number.POSITIVE_INFINITY): number {
    if (this.#isAfterSpace || this.#punctuation !== null || this.#gate.isHolding) return 0;
    const end = Math.min(text.length, from + max);
    let last: Kind = KIND.space;
    let to = from;
    for (; to < end; to += 1) {
      const kind = kindOf(text.charCodeAt(to));
      if (!isWordKind(kind)) break;
      last = kind;
      if (kind === KIND.unspaced) this.#unspacedEnd = index + to + 1 - from;
    }
    if (to === from) return 0;
    this.#spokenEnd = index + to - from;
    this.#lastSpoken = last;
    this.#lastCodePoint = text.charCodeAt(to - 1);
    const missing = MAX_TOKEN - this.#token.length;
    if (missing > 0) this.#token += text.slice(from, Math.min(to, from + missing));
    return to - from;
  }

  /**
   * Where the text would break if nothing followed what is there for now; null = not at its end. `offset` is the end
   * of the text. Asking changes nothing.
   */
  breakAtEnd(offset: number): Boundary | null {
    const punctuation = this.#punctuation;
    if (punctuation !== null && punctuation.at >= 0) {
      const rank = rankAtEnd(punctuation);
      if (rank !== null)
        return { rank, at: punctuation.at, spokenEnd: punctuation.spokenEnd, isParagraph: false };
    }
    const rank = this.#isAfterSpace ? this.#rankAfterSpace() : this.#rankInToken();
    if (rank === null || this.#joinerEnd === offset || this.#flagHalfEnd === offset) return null;
    return { rank, at: this.settledTo(offset), spokenEnd: this.#spokenEnd, isParagraph: this.#newlines > 1 };
  }

  #rankAfterSpace(): BoundaryRank | null {
    if (this.#newlines > 1) return "sentence";
    // "1. " belongs to what follows.
    if (this.#isAfterMarker) return null;
    const punctuation = this.#punctuation;
    const rank = punctuation === null ? null : rankAtEnd(punctuation);
    if (rank !== null) return rank;
    if (this.#newlines > 0 || this.#lastSpoken === KIND.unspaced) return "clause";
    const meaning = punctuation?.kind === "dot" ? stopMeaning(punctuation.token) : "end";
    return meaning === "end" || meaning === "maybe" ? "word" : null;
  }

  /** What is held back right behind the punctuation may be a closing tag. */
  #rankInToken(): BoundaryRank | null {
    const punctuation = this.#punctuation;
    return punctuation === null || punctuation.at >= 0 || this.#gate.isHolding
      ? null
      : rankAtEnd(punctuation);
  }

  /** The text ends here for now: decides what hung on the next characters, then starts afresh. */
  finish(): void {
    this.#gate.finish();
    if (this.#punctuation !== null && this.#punctuation.word !== null)
      this.#resolveWord(this.#punctuation, this.#punctuation.word);
    this.#punctuation = null;
    this.#token = "";
    this.#tokenPlace = "sentence";
    this.#isAfterSpace = true;
    this.#isAtStart = true;
    this.#newlines = 0;
    this.#isAfterMarker = false;
  }

  /** Tags are as invisible to the rules as quotes. They stay with the text behind them, closing ones with that before. */
  #tag(start: number, end: number): void {
    if (this.#closingAt !== start) {
      if (this.#isAfterSpace) this.#startToken(KIND.open, start);
      else this.#emit("weak", start);
    }
    this.#reportTag(start, end);
  }

  #character(codePoint: number, index: number): void {
    const kind = kindOf(codePoint);
    if (kind === KIND.extend) {
      // White space with a combining mark on it is one grapheme: no cut between them.
      if (this.#isAfterSpace) this.#punctuation = null;
      this.#isAfterSpace = false;
      if (joinsPictures(codePoint)) this.#joinerEnd = index + unitsOf(codePoint);
    } else if (kind === KIND.space || kind === KIND.newline) {
      this.#space(kind);
    } else {
      if (this.#isAfterSpace) this.#startToken(kind, index);
      else this.#continueToken(kind, index);
      this.#note(kind, codePoint, index);
    }
  }

  #space(kind: Kind): void {
    if (!this.#isAfterSpace) this.#endToken();
    if (this.#punctuation !== null) this.#punctuation.isSpaced = true;
    if (kind === KIND.newline) this.#newlines += 1;
    this.#isAfterSpace = true;
  }

  #endToken(): void {
    const punctuation = this.#punctuation;
    if (punctuation !== null && punctuation.word !== null) this.#resolveWord(punctuation, punctuation.word);
    const isMarker =
      (this.#tokenPlace === "line" && LIST_MARKER.test(this.#token)) ||
      (this.#tokenPlace === "sentence" && NUMBER_MARKER.test(this.#token));
    this.#isAfterMarker = isMarker;
    if (isMarker) {
      // Each item of a list is a sentence, and "1." is not one.
      if (this.#tokenPlace === "line") this.#emit("sentence", this.#tokenAt, this.#tokenSpokenEnd);
      this.#punctuation = null;
    } else if (punctuation !== null && punctuation.at === this.#tokenAt && LONE_CLOSER.test(this.#token)) {
      // "« Oui. » Bon.": the quote that stands alone closes what is before it.
      punctuation.at = -1;
    } else if (
      this.#token.length <= 2 &&
      LONE_DASH.test(this.#token) &&
      (this.#punctuation === null || !endsSentence(this.#punctuation))
    ) {
      this.#punctuation = newPunctuation("dash", "", null);
    }
  }

  #startToken(kind: Kind, index: number): void {
    const punctuation = this.#punctuation;
    this.#token = "";
    this.#tokenAt = index;
    this.#tokenSpokenEnd = this.#spokenEnd;
    this.#tokenPlace = this.#newlines > 0 ? "line" : this.#isAtStart ? "sentence" : "inside";
    if (this.#newlines > 1) {
      this.#report({ rank: "sentence", at: index, spokenEnd: this.#spokenEnd, isParagraph: true });
      this.#punctuation = null;
    } else if (
      punctuation !== null &&
      kind === KIND.emoji &&
      punctuation.at < 0 &&
      endsSentence(punctuation)
    ) {
      // "Great! 😀 Next": the picture belongs to the sentence that it comments.
      this.#emit("weak", index);
      punctuation.isSpaced = false;
    } else {
      this.#emitSpace(punctuation, kind, index);
      if (punctuation !== null) this.#meetAfterSpace(punctuation, kind, index);
    }
    this.#isAfterSpace = false;
    this.#isAtStart = false;
    this.#isAfterMarker = false;
    this.#newlines = 0;
  }

  /** The rank of white space itself. */
  #emitSpace(punctuation: Punctuation | null, kind: Kind, index: number): void {
    const isClause = punctuation !== null && punctuation.at < 0 && !endsSentence(punctuation);
    // Thai, Lao and Khmer put spaces between phrases, not words.
    const isPhrase = this.#lastSpoken === KIND.unspaced && kind === KIND.unspaced;
    if (this.#newlines > 0 || isClause || isPhrase) this.#emit("clause", index);
    else {
      const isWeak =
        kind === KIND.close || (punctuation?.kind === "dot" && stopMeaning(punctuation.token) !== "end");
      this.#emit(isWeak ? "weak" : "word", index);
    }
    if (isClause) this.#punctuation = null;
  }

  #meetAfterSpace(punctuation: Punctuation, kind: Kind, index: number): void {
    if (!endsSentence(punctuation)) return;
    if (punctuation.at < 0) {
      punctuation.at = index;
      punctuation.spokenEnd = this.#spokenEnd;
    }
    if (punctuation.word === null && isSpoken(kind)) this.#decide(punctuation, kind);
  }

  /** The first letter or digit behind the punctuation and its white space. */
  #decide(punctuation: Punctuation, kind: Kind): void {
    const verdict = verdictOf(punctuation, kind);
    if (verdict === "wait") {
      punctuation.word = "";
      return;
    }
    this.#punctuation = null;
    if (verdict === "no") return;
    this.#emit(verdict, punctuation.at, punctuation.spokenEnd);
    if (verdict === "sentence" && punctuation.at === this.#tokenAt) this.#tokenPlace = "sentence";
  }

  #resolveWord(punctuation: Punctuation, word: string): void {
    this.#punctuation = null;
    const verdict = verdictOfWord(punctuation, word);
    if (verdict !== "no") this.#emit(verdict, punctuation.at, punctuation.spokenEnd);
  }

  #continueToken(kind: Kind, index: number): void {
    const punctuation = this.#punctuation;
    if (punctuation === null) return;
    if (punctuation.word !== null) {
      const isPartOfWord =
        isSpoken(kind) || kind === KIND.quote || kind === KIND.close || kind === KIND.format;
      if (!isPartOfWord) this.#resolveWord(punctuation, punctuation.word);
    } else if (punctuation.isSpaced) {
      if (isSpoken(kind)) this.#decide(punctuation, kind);
    } else this.#meetDirectly(punctuation, kind, index);
  }

  /** A character right behind the punctuation. */
  #meetDirectly(punctuation: Punctuation, kind: Kind, index: number): void {
    if (kind === KIND.close || kind === KIND.quote || kind === KIND.glue || kind === KIND.format) return;
    if (kind === KIND.emoji || kind === KIND.emphasis || (kind >= KIND.dot && kind <= KIND.ellipsis)) return;
    const isWide =
      punctuation.kind === "wideStop" || punctuation.kind === "wideClause" || punctuation.kind === "dash";
    if (kind === KIND.openQuote && !isWide) return;
    this.#punctuation = null;
    const isShort = punctuation.kind === "dot" && stopMeaning(punctuation.token) !== "end";
    if (isWide || (punctuation.isUnspaced && kind === KIND.unspaced && !isShort)) {
      this.#emit(endsSentence(punctuation) && punctuation.kind !== "ellipsis" ? "sentence" : "clause", index);
      this.#tokenPlace = "inside";
    }
  }

  /** Takes the character into the state: spoken end, token, and the punctuation that it may be. */
  #note(kind: Kind, codePoint: number, index: number): void {
    if (
      this.#punctuation !== null &&
      this.#punctuation.word !== null &&
      (isSpoken(kind) || kind === KIND.quote)
    ) {
      this.#punctuation.word = takeCharacter(this.#punctuation.word, codePoint);
    }
    const behind = this.#spokenEnd === index ? this.#lastCodePoint : null;
    if (isSpoken(kind)) {
      this.#spokenEnd = index + unitsOf(codePoint);
      this.#lastSpoken = kind;
      this.#lastCodePoint = codePoint;
      if (kind === KIND.emoji && isFlagHalf(codePoint)) {
        this.#flagHalfEnd = this.#flagHalfEnd === index ? -1 : this.#spokenEnd;
      }
      if (kind === KIND.unspaced) this.#unspacedEnd = this.#spokenEnd;
    } else if (kind >= KIND.dot && kind <= KIND.ellipsis) {
      this.#punctuation = punctuationAfter(this.#punctuation, kind, this.#token, behind);
    } else if (kind === KIND.close && this.#punctuation === null) {
      this.#punctuation = newPunctuation("clause", "", behind);
    }
    this.#token = takeCharacter(this.#token, codePoint);
  }

  #emit(rank: BoundaryRank, at: number, spokenEnd = this.#spokenEnd): void {
    this.#report({ rank, at, spokenEnd, isParagraph: false });
  }
}

/** The joiner of pictures, and the letters of a flag's tag but for the one that ends it. */
function joinsPictures(codePoint: number): boolean {
  return codePoint === 0x200d || (codePoint >= 0xe0020 && codePoint < 0xe007f);
}

function takeCharacter(token: string, codePoint: number): string {
  return token.length < MAX_TOKEN ? token + String.fromCodePoint(codePoint) : token;
}
