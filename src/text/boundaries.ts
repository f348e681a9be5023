/**
 * Where a text may be cut for speaking, and how good each place is. Character by character and without looking at
 * chunk borders, so any split of a text reports the same boundaries at the same characters.
 */
import { startsSentences, stopMeaning } from "./abbreviations.ts";
import { isSpoken, KIND, type Kind, kindOf, unitsOf } from "./characters.ts";
import { CodePointReader } from "./code-points.ts";
import { isSentenceMark, type Mark, markAfter, newMark, verdictOf } from "./marks.ts";
import { TagGate } from "./markup.ts";

/** From best to worst. `weak`: after "Dr." or between initials: only where nothing else is left. */
export type BoundaryRank = "sentence" | "clause" | "word" | "weak";

export interface Boundary {
  readonly rank: BoundaryRank;
  /** UTF-16 offset of the first character behind the cut; white space stays before it. */
  readonly at: number;
  /** End of the last letter, digit or emoji before the cut. */
  readonly spokenEnd: number;
}

/** Longest token that is compared with the lists of abbreviations. */
const MAX_TOKEN = 24;
const LIST_MARKER = /^(?:[-*•‣◦▪–·]|\(?\d{1,3}[.)]|\(?\p{L}[.)])$/u;
const LONE_DASH = /^(?:--?|–)$/;
const NUMBER_MARKER = /^\(?\d{1,3}[.)]$/;

/** The boundaries of a text that grows, for those who don't cut it: captions. */
export class BoundaryFinder {
  #found: Boundary[] = [];
  readonly #scanner = new BoundaryScanner((boundary) => this.#found.push(boundary));
  readonly #reader = new CodePointReader((codePoint, index) => this.#scanner.step(codePoint, index));

  /** What this text decides; a sentence end is known once the next word has begun. */
  push(text: string): Boundary[] {
    this.#reader.push(text);
    return this.#found.splice(0);
  }
}

export class BoundaryScanner {
  readonly #report: (boundary: Boundary) => void;
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
  #unspacedEnd = 0;
  #tagEnd = 0;

  /** `report` may be called with places some characters back, and out of order between ranks. */
  constructor(report: (boundary: Boundary) => void) {
    this.#report = report;
  }

  /** End of what was looked at: before what may be a tag; `offset` is the end of the text so far. */
  settledTo(offset: number): number {
    return this.#gate.settledTo(offset);
  }

  get isAfterSpace(): boolean {
    return this.#isAfterSpace;
  }

  /** End of the last tag; 0 = none yet. */
  get tagEnd(): number {
    return this.#tagEnd;
  }

  /** End of the last letter of a script without spaces; 0 = none yet. */
  get unspacedEnd(): number {
    return this.#unspacedEnd;
  }

  step(codePoint: number, index: number): void {
    this.#gate.step(codePoint, index);
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
  }

  /** Tags are as invisible to the rules as quotes, and stay with the text behind them. */
  #tag(start: number, end: number): void {
    if (this.#isAfterSpace) this.#startToken(KIND.open, start);
    else this.#emit("weak", start);
    this.#tagEnd = end;
  }

  #character(codePoint: number, index: number): void {
    const kind = kindOf(codePoint);
    if (kind === KIND.extend) {
      // White space with a mark on it is one grapheme: no cut between them.
      if (this.#isAfterSpace) this.#mark = null;
      this.#isAfterSpace = false;
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
    if (isMarker) {
      // Each item of a list is a sentence, and "1." is not one.
      if (this.#tokenPlace === "line") this.#emit("sentence", this.#tokenAt, this.#tokenSpokenEnd);
      this.#mark = null;
    } else if (LONE_DASH.test(this.#token) && (this.#mark === null || !isSentenceMark(this.#mark))) {
      this.#mark = newMark("dash", "", false);
    }
  }

  #startToken(kind: Kind, index: number): void {
    const mark = this.#mark;
    this.#token = "";
    this.#tokenAt = index;
    this.#tokenSpokenEnd = this.#spokenEnd;
    this.#tokenPlace = this.#newlines > 0 ? "line" : this.#isAtStart ? "sentence" : "inside";
    if (this.#newlines > 1) {
      this.#emit("sentence", index);
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
    this.#newlines = 0;
  }

  /** The rank of white space itself. */
  #emitSpace(mark: Mark | null, kind: Kind, index: number): void {
    const isClause = mark !== null && mark.at < 0 && !isSentenceMark(mark);
    // Thai, Lao and Khmer put spaces between phrases, not words.
    const isPhrase = this.#lastSpoken === KIND.unspaced && kind === KIND.unspaced;
    if (this.#newlines > 0 || isClause || isPhrase) this.#emit("clause", index);
    else this.#emit(mark?.kind === "dot" && stopMeaning(mark.token) !== "end" ? "weak" : "word", index);
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
    if (mark.kind === "ellipsis") {
      // "Well... I think" goes on; "Wait... What" does not.
      this.#emit(/^I\b/.test(word) ? "clause" : "sentence", mark.at, mark.spokenEnd);
    } else if (startsSentences(word)) this.#emit("sentence", mark.at, mark.spokenEnd);
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
    if (isWide || (mark.isUnspaced && kind === KIND.unspaced)) {
      this.#emit(isSentenceMark(mark) && mark.kind !== "ellipsis" ? "sentence" : "clause", index);
      this.#tokenPlace = "inside";
    }
  }

  /** Takes the character into the state: spoken end, token, and the mark that it may be. */
  #note(kind: Kind, codePoint: number, index: number): void {
    if (this.#mark !== null && this.#mark.word !== null && (isSpoken(kind) || kind === KIND.quote)) {
      this.#mark.word = takeCharacter(this.#mark.word, codePoint);
    }
    const isUnspaced = this.#lastSpoken === KIND.unspaced && this.#spokenEnd === index;
    if (isSpoken(kind)) {
      this.#spokenEnd = index + unitsOf(codePoint);
      this.#lastSpoken = kind;
      if (kind === KIND.unspaced) this.#unspacedEnd = this.#spokenEnd;
    } else if (kind >= KIND.dot && kind <= KIND.ellipsis) {
      this.#mark = markAfter(this.#mark, kind, this.#token, isUnspaced);
    } else if (kind === KIND.close && this.#mark === null) {
      this.#mark = newMark("clause", "", isUnspaced);
    }
    this.#token = takeCharacter(this.#token, codePoint);
  }

  #emit(rank: BoundaryRank, at: number, spokenEnd = this.#spokenEnd): void {
    this.#report({ rank, at, spokenEnd });
  }
}

function takeCharacter(token: string, codePoint: number): string {
  return token.length < MAX_TOKEN ? token + String.fromCodePoint(codePoint) : token;
}
