/**
 * The words that a caption lights up one after the other. A word is what stands between white space, without the
 * punctuation around it; in scripts without spaces what the dictionary says; a run of emoji is a word of its own.
 * Character by character, so that a text that grows gives the same words as the whole one.
 */
import { isFlagHalf, isWordKind, KIND, type Kind, kindOf, unitsOf } from "./characters.ts";
import { isDirection, TagGate } from "./markup.ts";
import { unspacedWords, type WordSpan } from "./unspaced.ts";
import { hasWord, trimToWords } from "./word-trim.ts";

/** The words of `text`, in order. Tags (`<break time="1s"/>`) are no words. */
export function wordSpans(text: string): WordSpan[] {
  const scanner = new WordScanner();
  const words = [...scanner.push(text), ...scanner.endWord()];
  return words.map(({ start, end }) => ({ start, end }));
}

export interface ScannedWord extends WordSpan {
  readonly text: string;
}

type PieceKind = "none" | "spaced" | "unspaced" | "emoji";

/** Runs of a script without spaces are looked up in the dictionary in windows, so that one long run stays linear. */
const UNSPACED_WINDOW = 256;
/** Words that end in the last part of a window are looked up again with what follows. */
const UNSPACED_SURE = 192;
const ZERO_WIDTH_JOINER = 0x200d;

/** Finds the words of a text that grows. A word comes out when the character behind it shows that it is complete. */
export class WordScanner {
  /** Offset behind the last character that was read. */
  #end = 0;
  readonly #gate: TagGate;
  #kind: PieceKind = "none";
  #pieceStart = 0;
  #pieceEnd = 0;
  #isJoined = false;
  /** The piece is letters, digits and marks on them only: there is nothing to trim. */
  #isPlain = false;
  /** Text from `#base` on: the open piece and what follows it. */
  #text = "";
  #base = 0;
  #windowEnd = 0;
  #words: ScannedWord[] = [];

  /** `hasDirections`: `[laughs]` is no word, as of a model that acts on it. */
  constructor(hasDirections = false) {
    this.#gate = new TagGate(
      {
        character: (codePoint, index) => this.#character(codePoint, index),
        tag: (start, end) => this.#tag(start, end),
      },
      { hasBracketTags: hasDirections },
    );
  }

  push(text: string): ScannedWord[] {
    this.#text += text;
    for (let at = 0; at < text.length; ) {
      const start = this.#end;
      if (this.#passLetters(text, at) === 0) {
        const codePoint = text.codePointAt(at) ?? 0;
        this.#end += unitsOf(codePoint);
        this.#gate.step(codePoint, start);
      }
      at += this.#end - start;
    }
    this.#forget();
    return this.#take();
  }

  /** The text ends here, or what follows is no part of the word before: the open word is complete. */
  endWord(): ScannedWord[] {
    this.#gate.finish();
    this.#close();
    this.#forget();
    return this.#take();
  }

  #take(): ScannedWord[] {
    const words = this.#words;
    if (words.length > 0) this.#words = [];
    return words;
  }

  /** Drops the text before the open piece. What the tag gate holds back is short and stays too. */
  #forget(): void {
    if (this.#kind === "none" && this.#gate.isHolding) return;
    const keepFrom = this.#kind === "none" ? this.#end : this.#pieceStart;
    if (keepFrom === this.#base) return;
    this.#text = this.#text.slice(keepFrom - this.#base);
    this.#base = keepFrom;
  }

  /** Takes letters that go on with the open piece, as `#character` would. Returns how many. */
  #passLetters(text: string, from: number): number {
    if (this.#gate.isHolding) return 0;
    let to = from;
    if (this.#kind === "spaced") to = endOfSpacedLetters(text, from);
    else if (this.#kind === "unspaced") {
      to = endOfUnspacedLetters(text, from, from + this.#windowEnd - 1 - this.#end);
    }
    if (to === from) return 0;
    this.#end += to - from;
    this.#pieceEnd = this.#end;
    return to - from;
  }

  #tag(start: number, end: number): void {
    const tag = this.#text.slice(start - this.#base, end - this.#base);
    if (tag.startsWith("<") || isDirection(tag)) {
      this.#close();
      return;
    }
    // "[1]" is read.
    let index = start;
    for (const character of tag) {
      this.#character(character.codePointAt(0) ?? 0, index);
      index += character.length;
    }
  }

  #character(codePoint: number, index: number): void {
    const kind = kindOf(codePoint);
    const pieceKind = pieceKindOf(kind);
    const isJoined = this.#isJoined && isPicture(kind, codePoint);
    if (kind === KIND.extend || kind === KIND.format || isJoined) {
      // Part of the grapheme or word before it; alone it is nothing.
      if (this.#kind !== "none") this.#pieceEnd = index + unitsOf(codePoint);
      if (kind !== KIND.extend) this.#isPlain = false;
      this.#isJoined = codePoint === ZERO_WIDTH_JOINER && this.#kind !== "none";
      return;
    }
    if (pieceKind !== this.#kind) {
      this.#close();
      this.#kind = pieceKind;
      this.#pieceStart = index;
      this.#windowEnd = index + UNSPACED_WINDOW;
      this.#isPlain = true;
    }
    if (!isWordKind(kind)) this.#isPlain = false;
    this.#pieceEnd = index + unitsOf(codePoint);
    if (pieceKind === "unspaced" && this.#pieceEnd >= this.#windowEnd) this.#closeWindow();
  }

  #close(): void {
    const start = this.#pieceStart;
    const piece =
      this.#kind === "none" ? "" : this.#text.slice(start - this.#base, this.#pieceEnd - this.#base);
    if (this.#kind === "spaced" && this.#isPlain && hasWord(piece)) {
      this.#found({ text: piece, start, end: this.#pieceEnd });
    } else if (this.#kind === "spaced") for (const word of trimToWords(piece)) this.#add(start, word);
    else if (this.#kind === "unspaced") for (const word of unspacedWords(piece)) this.#add(start, word);
    else if (this.#kind === "emoji") this.#add(start, { start: 0, end: piece.length });
    this.#kind = "none";
    this.#isJoined = false;
  }

  #closeWindow(): void {
    const start = this.#pieceStart;
    const words = unspacedWords(this.#text.slice(start - this.#base, this.#pieceEnd - this.#base));
    let end = 0;
    for (const word of words) {
      if (word.end > UNSPACED_SURE) break;
      this.#add(start, word);
      end = word.end;
    }
    this.#pieceStart = start + end;
    // Where one word filled the window, the next look is when the run is twice as long.
    this.#windowEnd =
      end > 0 ? this.#pieceStart + UNSPACED_WINDOW : this.#pieceEnd + (this.#pieceEnd - start);
  }

  #add(offset: number, word: WordSpan): void {
    const [start, end] = [offset + word.start, offset + word.end];
    this.#found({ text: this.#text.slice(start - this.#base, end - this.#base), start, end });
  }

  /** A push seldom gives more than one word: a list of one is smaller than one that `push` made room in. */
  #found(word: ScannedWord): void {
    if (this.#words.length === 0) this.#words = [word];
    else this.#words.push(word);
  }
}

function endOfSpacedLetters(text: string, from: number): number {
  let to = from;
  for (; to < text.length; to += 1) {
    const kind = kindOf(text.charCodeAt(to));
    if (!isWordKind(kind) || kind === KIND.unspaced) break;
  }
  return to;
}

function endOfUnspacedLetters(text: string, from: number, limit: number): number {
  const end = Math.min(text.length, limit);
  let to = from;
  while (to < end && kindOf(text.charCodeAt(to)) === KIND.unspaced) to += 1;
  return to;
}

/** What a zero width joiner joins to the picture before it; halves of flags are never joined. */
function isPicture(kind: Kind, codePoint: number): boolean {
  return (kind === KIND.emoji && !isFlagHalf(codePoint)) || kind === KIND.symbol;
}

function pieceKindOf(kind: Kind): PieceKind {
  switch (kind) {
    case KIND.space:
    case KIND.newline:
    case KIND.glue:
    case KIND.wideStop:
    case KIND.wideClause:
      return "none";
    case KIND.unspaced:
      return "unspaced";
    case KIND.emoji:
      return "emoji";
    default:
      return "spaced";
  }
}
