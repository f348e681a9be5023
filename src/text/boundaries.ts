/**
 * Where a text may be cut for speaking, and how good each place is. Character by character and without looking at
 * chunk borders, so any split of a text reports the same boundaries at the same characters.
 */
import { stopMeaning } from "./abbreviations.ts";
import { isSpoken, isWordKind, KIND, type Kind, kindOf, unitsOf } from "./characters.ts";
import { CodePointReader } from "./code-points.ts";
import {
  isSentenceMark,
  LIST_MARKER,
  LONE_CLOSER,
  LONE_DASH,
  type Mark,
  markAfter,
  NUMBER_MARKER,
  newMark,
  rankAtEnd,
  verdictOf,
  verdictOfWord,
} from "./marks.ts";
import { TagGate } from "./markup.ts";

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
  readonly #reader = new CodePointReader((codePoint, index) => this.#scanner.step(codePoint, index));

  /** What this text decides; a sentence end is known once the next word has begun. */
  push(text: string): Boundary[] {
    const reader = this.#reader;
    for (let at = 0; at < text.length; at += 1) {
      const passed = reader.isWhole ? this.#scanner.passLetters(text, at, reader.offset) : 0;
      reader.advance(passed);
      at += passed;
      if (at < text.length) reader.step(text.charCodeAt(at));
    }
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
  #mark: Mark | null = null;
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

  /** End of what was looked at: before what may be a tag; `offset` is the end of the text so far. */
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
    if (this.#isAfterSpace || this.#mark !== null || this.#gate.isHolding) return 0;
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
    const mark = this.#mark;
    if (mark !== null && mark.at >= 0) {
      const rank = rankAtEnd(mark);
      if (rank !== null) return { rank, at: mark.at, spokenEnd: mark.spokenEnd, isParagraph: false };
    }
    const rank = this.#isAfterSpace ? this.#rankAfterSpace() : this.#rankInToken();
    if (rank === null || this.#joinerEnd === offset || this.#flagHalfEnd === offset) return null;
    return { rank, at: this.settledTo(offset), spokenEnd: this.#spokenEnd, isParagraph: this.#newlines > 1 };
  }

  #rankAfterSpace(): BoundaryRank | null {
    if (this.#newlines > 1) return "sentence";
    // "1. " belongs to what follows.
    if (this.#isAfterMarker) return null;
    const mark = this.#mark;
    const rank = mark === null ? null : rankAtEnd(mark);
    if (rank !== null) return rank;
    if (this.#newlines > 0 || this.#lastSpoken === KIND.unspaced) return "clause";
    const meaning = mark?.kind === "dot" ? stopMeaning(mark.token) : "end";
    return meaning === "end" || meaning === "maybe" ? "word" : null;
  }

  /** What is held back right behind the mark may be a closing tag. */
  #rankInToken(): BoundaryRank | null {
    const mark = this.#mark;
    return mark === null || mark.at >= 0 || this.#gate.isHolding ? null : rankAtEnd(mark);
  }

  /** The text ends here for now: decides what hung on the next characters, then starts afresh. */
  finish(): void {
    this.#gate.finish();
    if (this.#mark !== null && this.#mark.word !== null) this.#resolveWord(this.#mark, this.#mark.word);
    this.#mark = null;
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
      // White space with a mark on it is one grapheme: no cut between them.
      if (this.#isAfterSpace) this.#mark = null;
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
    if (this.#mark !== null) this.#mark.isSpaced = true;
    if (kind === KIND.newline) this.#newlines += 1;
    this.#isAfterSpace = true;
  }

  #endToken(): void {
    const mark = this.#mark;
    if (mark !== null && mark.word !== null) this.#resolveWord(mark, mark.word);
    const isMarker =
      (this.#tokenPlace === "line" && LIST_MARKER.test(this.#token)) ||
      (this.#tokenPlace === "sentence" && NUMBER_MARKER.test(this.#token));
    this.#isAfterMarker = isMarker;
    if (isMarker) {
      // Each item of a list is a sentence, and "1." is not one.
      if (this.#tokenPlace === "line") this.#emit("sentence", this.#tokenAt, this.#tokenSpokenEnd);
      this.#mark = null;
    } else if (mark !== null && mark.at === this.#tokenAt && LONE_CLOSER.test(this.#token)) {
      // "« Oui. » Bon.": the quote that stands alone closes what is before it.
      mark.at = -1;
    } else if (
      this.#token.length <= 2 &&
      LONE_DASH.test(this.#token) &&
      (this.#mark === null || !isSentenceMark(this.#mark))
    ) {
      this.#mark = newMark("dash", "", null);
    }
  }

  #startToken(kind: Kind, index: number): void {
    const mark = this.#mark;
    this.#token = "";
    this.#tokenAt = index;
    this.#tokenSpokenEnd = this.#spokenEnd;
    this.#tokenPlace = this.#newlines > 0 ? "line" : this.#isAtStart ? "sentence" : "inside";
    if (this.#newlines > 1) {
      this.#report({ rank: "sentence", at: index, spokenEnd: this.#spokenEnd, isParagraph: true });
      this.#mark = null;
    } else if (mark !== null && kind === KIND.emoji && mark.at < 0 && isSentenceMark(mark)) {
      // "Great! 😀 Next": the picture belongs to the sentence that it comments.
      this.#emit("weak", index);
      mark.isSpaced = false;
    } else {
      this.#emitSpace(mark, kind, index);
      if (mark !== null) this.#meetAfterSpace(mark, kind, index);
    }
    this.#isAfterSpace = false;
    this.#isAtStart = false;
    this.#isAfterMarker = false;
    this.#newlines = 0;
  }

  /** The rank of white space itself. */
  #emitSpace(mark: Mark | null, kind: Kind, index: number): void {
    const isClause = mark !== null && mark.at < 0 && !isSentenceMark(mark);
    // Thai, Lao and Khmer put spaces between phrases, not words.
    const isPhrase = this.#lastSpoken === KIND.unspaced && kind === KIND.unspaced;
    if (this.#newlines > 0 || isClause || isPhrase) this.#emit("clause", index);
    else {
      const isWeak = kind === KIND.close || (mark?.kind === "dot" && stopMeaning(mark.token) !== "end");
      this.#emit(isWeak ? "weak" : "word", index);
    }
    if (isClause) this.#mark = null;
  }

  #meetAfterSpace(mark: Mark, kind: Kind, index: number): void {
    if (!isSentenceMark(mark)) return;
    if (mark.at < 0) {
      mark.at = index;
      mark.spokenEnd = this.#spokenEnd;
    }
    if (mark.word === null && isSpoken(kind)) this.#decide(mark, kind);
  }

  /** The first letter or digit behind the mark and its white space. */
  #decide(mark: Mark, kind: Kind): void {
    const verdict = verdictOf(mark, kind);
    if (verdict === "wait") {
      mark.word = "";
      return;
    }
    this.#mark = null;
    if (verdict === "no") return;
    this.#emit(verdict, mark.at, mark.spokenEnd);
    if (verdict === "sentence" && mark.at === this.#tokenAt) this.#tokenPlace = "sentence";
  }

  #resolveWord(mark: Mark, word: string): void {
    this.#mark = null;
    const verdict = verdictOfWord(mark, word);
    if (verdict !== "no") this.#emit(verdict, mark.at, mark.spokenEnd);
  }

  #continueToken(kind: Kind, index: number): void {
    const mark = this.#mark;
    if (mark === null) return;
    if (mark.word !== null) {
      const isPartOfWord =
        isSpoken(kind) || kind === KIND.quote || kind === KIND.close || kind === KIND.format;
      if (!isPartOfWord) this.#resolveWord(mark, mark.word);
    } else if (mark.isSpaced) {
      if (isSpoken(kind)) this.#decide(mark, kind);
    } else this.#meetDirectly(mark, kind, index);
  }

  /** A character right behind the mark. */
  #meetDirectly(mark: Mark, kind: Kind, index: number): void {
    if (kind === KIND.close || kind === KIND.quote || kind === KIND.glue || kind === KIND.format) return;
    if (kind === KIND.emoji || kind === KIND.emphasis || (kind >= KIND.dot && kind <= KIND.ellipsis)) return;
    const isWide = mark.kind === "wideStop" || mark.kind === "wideClause" || mark.kind === "dash";
    if (kind === KIND.openQuote && !isWide) return;
    this.#mark = null;
    const isShort = mark.kind === "dot" && stopMeaning(mark.token) !== "end";
    if (isWide || (mark.isUnspaced && kind === KIND.unspaced && !isShort)) {
      this.#emit(isSentenceMark(mark) && mark.kind !== "ellipsis" ? "sentence" : "clause", index);
      this.#tokenPlace = "inside";
    }
  }

  /** Takes the character into the state: spoken end, token, and the mark that it may be. */
  #note(kind: Kind, codePoint: number, index: number): void {
    if (this.#mark !== null && this.#mark.word !== null && (isSpoken(kind) || kind === KIND.quote)) {
      this.#mark.word = takeCharacter(this.#mark.word, codePoint);
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
      this.#mark = markAfter(this.#mark, kind, this.#token, behind);
    } else if (kind === KIND.close && this.#mark === null) {
      this.#mark = newMark("clause", "", behind);
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

/** Two regional indicators are a flag. */
function isFlagHalf(codePoint: number): boolean {
  return codePoint >= 0x1f1e6 && codePoint <= 0x1f1ff;
}

function takeCharacter(token: string, codePoint: number): string {
  return token.length < MAX_TOKEN ? token + String.fromCodePoint(codePoint) : token;
}
