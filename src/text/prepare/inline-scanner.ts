/** The text that is not yet decided, and the decisions within a line. */
import type { Cleaning } from "../../protocol/vocabulary.ts";
import { isSpoken, KIND, kindOf } from "../characters.ts";
import { codePointBefore } from "../code-points.ts";
import { isAudioTag } from "../markup.ts";
import { emojiRunAt } from "./emoji.ts";
import { Emphasis } from "./emphasis.ts";
import { closingRun, codeSpanAt, commentEnd, linkAt, MAX_COMMENT, tagEnd } from "./inline.ts";
import { LineEnd } from "./line-end.ts";
import { atEnd, type Following, NO_MATCH, runLength, skip, type View, WAIT } from "./match.ts";
import type { Replacer } from "./replacer.ts";

const MAX_RUN = 64;
const PIPES = /[ \t]{0,64}\|[ \t|]{0,64}/y;
const BLANKS = /[ \t\r]{1,64}/y;
const CLOSING_HASHES = /#{1,64}[ \t\r]{0,64}/y;
const NOTE = /\[\^[a-zA-Z0-9_-]{1,32}\]/y;
const ESCAPABLE = /[!-/:-@[-`{-~]/;

/** A span ahead that goes when it is reached: the target of a link, the ticks behind code. */
interface Pending {
  readonly start: number;
  readonly end: number;
  readonly isCode: boolean;
}

export class InlineScanner implements View {
  readonly #wants: ReadonlySet<Cleaning>;
  readonly #sink: Replacer;
  readonly #dropsAudioTags: boolean;
  readonly emphasis = new Emphasis();
  readonly line = new LineEnd();
  /** Undecided text, and how far of it is decided. */
  text = "";
  at = 0;
  following: Following = "more";
  /** Within the lines of fenced code that is read. */
  isInFence = false;
  /** The code point before `at` in the client's text; 0 = none. */
  #before = 0;
  /** The last code point that is said; 0 = none. */
  #said = 0;
  #isRow = false;
  #isHeading = false;
  #pending: Pending[] = [];
  /** No comment ends before this offset. */
  #commentSearchedTo = 0;

  constructor(wants: ReadonlySet<Cleaning>, sink: Replacer, dropsAudioTags: boolean) {
    this.#wants = wants;
    this.#sink = sink;
    this.#dropsAudioTags = dropsAudioTags;
  }

  get isFinal(): boolean {
    return this.following === "pause" || this.following === "end";
  }

  /** For what is no markup: a stall decides that too. */
  get plainView(): View {
    return { text: this.text, isFinal: this.following !== "more" };
  }

  get beforeText(): string {
    return this.#before === 0 ? "" : String.fromCodePoint(this.#before);
  }

  /** Where the next span that goes starts. */
  get pendingAt(): number {
    return this.#pending.length === 0 ? Number.POSITIVE_INFINITY : (this.#pending.at(-1)?.start ?? 0);
  }

  keep(end: number): void {
    const text = this.text.slice(this.at, end);
    this.#pass(end);
    this.#said = this.#before;
    this.line.say(text);
    this.#sink.keep(text);
  }

  drop(end: number): void {
    if (end === this.at) return;
    this.#sink.drop(end - this.at);
    this.#pass(end);
  }

  /** Drops lines: what stands on either side is apart. */
  dropBlock(end: number): void {
    this.drop(end);
    this.#sink.part();
  }

  put(end: number, spoken: string): void {
    this.#sink.put(spoken, end - this.at);
    this.#pass(end);
    this.#said = spoken.codePointAt(spoken.length - 1) ?? 0;
    this.line.say(spoken);
  }

  startLine(kind: string): void {
    this.#isRow = kind === "row";
    this.#isHeading = kind === "heading";
    if (kind !== "quote")
      this.line.start(kind === "item" || kind === "ordered" || kind === "heading" || kind === "row");
  }

  newline(): void {
    this.endLine();
    this.keep(this.at + 1);
  }

  /** The line ends here, but for white space. */
  endLine(): void {
    const stop = this.line.missing;
    if (stop !== "") this.put(this.at, stop);
    this.line.start(false);
    this.#isRow = false;
    this.#isHeading = false;
  }

  /** Takes a span that was to go, if it starts here. */
  closePending(): boolean {
    if (this.#pending.length === 0) return false;
    const next = this.#pending.at(-1);
    if (!next || this.at < next.start) return false;
    this.#pending.pop();
    if (this.at === next.start) this.drop(next.end);
    return true;
  }

  /** Forgets what is decided. */
  trim(): void {
    const by = this.at;
    if (by === 0) return;
    this.text = this.text.slice(by);
    this.at = 0;
    this.#commentSearchedTo = Math.max(this.#commentSearchedTo - by, 0);
    if (this.#pending.length === 0) return;
    this.#pending = this.#pending.map(({ start, end, isCode }) => ({
      start: start - by,
      end: end - by,
      isCode,
    }));
  }

  /** Decides about the character at `at`, which may be more than text; false = more text is needed. */
  special(): boolean {
    const character = this.text[this.at] ?? "";
    if (character === "<") return this.#less();
    if (character === "[") return this.#bracket();
    if (this.#wants.has("emoji")) {
      const run = emojiRunAt(this.plainView, this.at);
      if (run === WAIT) return false;
      if (typeof run !== "number") return this.#leaveOut(run.start, run.end, run.hasSpaceBehind);
    }
    if (this.line.isWanted && " \t\r|".includes(character)) return this.#inPausingLine(character);
    if (character === "`") return this.#ticks();
    return this.#readsMarks() ? this.#mark(character) : this.#asText();
  }

  /** Whether Markdown's marks mean something here. */
  #readsMarks(): boolean {
    return this.#wants.has("markdown") && !this.isInFence && !this.#pending.at(-1)?.isCode;
  }

  #mark(character: string): boolean {
    if (character === "*" || character === "_" || character === "~") return this.#emphasis(character);
    const next = this.text[this.at + 1];
    // "Great!" is said in a stall; should an image begin with the mark, its text is said all the same.
    const waits = character === "!" ? this.following === "more" : !this.isFinal;
    if (next === undefined && waits) return false;
    if (character === "!" && next === "[") return this.#image();
    if (character !== "\\" || !ESCAPABLE.test(next ?? "")) return this.#asText();
    this.drop(this.at + 1);
    return this.#asText();
  }

  #asText(): boolean {
    this.keep(this.at + ((this.text.codePointAt(this.at) ?? 0) > 0xffff ? 2 : 1));
    return true;
  }

  #less(): boolean {
    if (this.#readsMarks()) {
      const end = commentEnd(this, this.at, this.#commentSearchedTo);
      const isSearched = end < 0 && this.text.startsWith("<!--", this.at);
      if (isSearched) this.#commentSearchedTo = Math.min(this.at + MAX_COMMENT, this.text.length);
      if (end === WAIT) return false;
      if (end !== NO_MATCH) {
        this.drop(end);
        return true;
      }
    }
    return this.#tag();
  }

  #tag(): boolean {
    const end = tagEnd(this, this.at);
    if (end === WAIT) return false;
    if (end === NO_MATCH) return this.#asText();
    const tag = this.text.slice(this.at, end);
    const isCode = this.isInFence || this.#pending.at(-1)?.isCode === true;
    if (this.#dropsAudioTags && !isCode && isAudioTag(tag)) {
      const behind = skip(BLANKS, this.text, end);
      const next = this.text[behind];
      if (next === undefined && !this.isFinal) return false;
      // `[text](target)` where Markdown is not cleaned: the text is read.
      if (next !== "(" || behind > end) return this.#leaveOut(this.at, behind, behind > end);
    }
    this.#pass(end);
    this.#said = this.#before;
    this.#sink.tag(tag);
    return true;
  }

  #bracket(): boolean {
    if (!this.#readsMarks()) return this.#tag();
    const link = linkAt(this, this.at);
    if (link === WAIT) return false;
    if (typeof link !== "number") return this.#enter(this.at + 1, link.textEnd, link.end, false);
    const note = skip(NOTE, this.text, this.at);
    if (note === this.at) return this.#tag();
    this.drop(note);
    return true;
  }

  #image(): boolean {
    const link = linkAt(this, this.at + 1);
    if (link === WAIT) return false;
    if (typeof link === "number") return this.#asText();
    return this.#enter(this.at + 2, link.textEnd, link.end, false);
  }

  /** Drops up to `from`, and later [start, end). */
  #enter(from: number, start: number, end: number, isCode: boolean): boolean {
    this.#pending.push({ start, end, isCode });
    this.drop(from);
    return true;
  }

  #ticks(): boolean {
    const isText = this.isInFence || this.#pending.at(-1)?.isCode === true;
    if (isText) return this.#asText();
    const span = codeSpanAt(this, this.at);
    if (span === WAIT) return false;
    if (typeof span !== "number")
      return this.#enter(this.at + span.ticks, span.close, span.close + span.ticks, true);
    this.keep(this.at + Math.max(runLength(this.text, this.at, "`", MAX_RUN), 1));
    return true;
  }

  #emphasis(character: string): boolean {
    const end = this.at + runLength(this.text, this.at, character, MAX_RUN);
    if (end >= this.text.length && atEnd(this) === WAIT && end - this.at < MAX_RUN) return false;
    const after = this.text.codePointAt(end) ?? 0;
    const isCut = end - this.at >= MAX_RUN;
    const run = { character, length: end - this.at, before: this.#before, after };
    const closing = this.emphasis.asksForClosing(run) ? closingRun(this, end, run) : NO_MATCH;
    if (closing === WAIT) return false;
    if (isCut || this.emphasis.take(run, closing !== NO_MATCH)) this.drop(end);
    else this.keep(end);
    return true;
  }

  /** Emoji and audio tags go, and with them the space that would be double. `end`: behind the white space behind. */
  #leaveOut(start: number, end: number, hasSpaceBehind: boolean): boolean {
    const hasSpaceBefore = start > this.at;
    const after = this.text.codePointAt(end) ?? 0;
    const isAtStart = !hasSpaceBefore && (this.#said === 0 || isSpace(this.#said));
    const isPause = after === 0 && this.following !== "end";
    if (isAtStart || (isClosing(after) && !isPause)) this.drop(end);
    else if (hasSpaceBefore) {
      this.keep(start);
      this.drop(end);
    } else if (hasSpaceBehind || (isSpacedWord(this.#said) && isSpacedWord(after))) this.put(end, " ");
    else this.drop(end);
    return true;
  }

  #inPausingLine(character: string): boolean {
    if (this.#isRow && this.#readsMarks()) {
      const end = skip(PIPES, this.text, this.at);
      if (end > this.at) return this.#pipe(end);
    }
    if (character === "|") return this.#asText();
    const end = skip(BLANKS, this.text, this.at);
    const next = this.text[end];
    if (next === undefined && this.following === "more") return false;
    if (next === "\n" || (next === undefined && this.following === "end")) this.endLine();
    else if (this.#isHeading && next === "#") return this.#closingHashes(end);
    this.keep(end);
    return true;
  }

  #pipe(end: number): boolean {
    const next = this.text[end];
    if (next === undefined && !this.isFinal) return false;
    const isLast = next === undefined || next === "\n" || next === "\r";
    if (isLast || !this.line.isSaid) this.drop(end);
    else this.put(end, this.line.endsInMark ? " " : ", ");
    return true;
  }

  #closingHashes(at: number): boolean {
    const end = skip(CLOSING_HASHES, this.text, at);
    const next = this.text[end];
    if (next === undefined && !this.isFinal) return false;
    if (next === undefined || next === "\n") this.drop(end);
    else this.keep(at);
    return true;
  }

  #pass(end: number): void {
    if (end === this.at) return;
    this.#before = codePointBefore(this.text, end);
    this.at = end;
  }
}

function isSpace(codePoint: number): boolean {
  return kindOf(codePoint) <= KIND.glue;
}

/** Nothing, white space or a mark that stands close to what is before it. */
function isClosing(codePoint: number): boolean {
  const kind = kindOf(codePoint);
  return (
    codePoint === 0 ||
    isSpace(codePoint) ||
    kind === KIND.close ||
    (kind >= KIND.dot && kind <= KIND.wideClause)
  );
}

function isSpacedWord(codePoint: number): boolean {
  const kind = codePoint === 0 ? KIND.space : kindOf(codePoint);
  return isSpoken(kind) && kind !== KIND.unspaced && kind !== KIND.emoji;
}
