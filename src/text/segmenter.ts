/**
 * Cuts a text that comes token by token into the pieces that are spoken one by one: at sentence ends that are known to
 * be ends, else, where a piece gets too long, at a clause, else between words.
 */

import { AtomicSpans } from "./atomic-spans.ts";
import { type Boundary, BoundaryScanner } from "./boundaries.ts";
import { isBlank, unitsOf } from "./characters.ts";
import { CutPositions } from "./cut-positions.ts";
import { lastGraphemeStart, lastUnspacedWordStart } from "./unspaced.ts";

export interface SegmenterOptions {
  /** Longest first piece, UTF-16 code units without the white space at its end: short, so that speech starts early. */
  readonly firstMaxChars?: number;
  /** Longest later piece. Longer ones sound better and start later. */
  readonly maxChars?: number;
  /**
   * The n-th piece collects whole sentences until it is this long (UTF-16 code units without the white space at its
   * end); the last number goes for all that follow. A blank line ends a piece of any length. `[0]`: each sentence alone.
   */
  readonly minChars?: readonly number[];
  /**
   * The last place up to `at` that is not inside something that is not to be cut: what is said for other text, as far
   * as that is no longer than `maxChars`. Asked about text that was pushed, or is being pushed.
   */
  readonly placeBefore?: (at: number, maxChars: number) => number;
}

/** A piece to be spoken. Offsets are UTF-16, into all text pushed so far, `end` exclusive. */
export interface Segment {
  readonly text: string;
  readonly start: number;
  readonly end: number;
}

const MIN_CHARS = [0, 60, 120, 200];
/** UTF-16 code units behind a cut that the dictionary sees: with less it finds other words than in the whole text. */
const DICTIONARY_CONTEXT = 12;
/** Chinese and Japanese need less: their words are short. */
const SHORT_CONTEXT = 3;
const LONG_WORDED = /[\p{sc=Thai}\p{sc=Lao}\p{sc=Khmer}\p{sc=Mymr}]/u;

/**
 * Any split of a text into pushes, between its code points, gives the same segments (as long as nobody calls `cutNow`), and their texts joined
 * are the text. White space stays at the end of the segment before it; before the first word, and behind a flush or a
 * stall cut, at the start of the segment that follows. The one thing left out is white space between a flush and the
 * end: there is nothing to speak in it.
 *
 * A word longer than the limits stays whole up to four times `maxChars` (at least 1000); then it is cut between
 * graphemes. Elements such as `<phoneme>` stay whole up to `maxChars`. Time is linear in the text, memory bounded by
 * the longest segment.
 */
export class Segmenter {
  readonly #firstMaxChars: number;
  readonly #maxChars: number;
  readonly #minChars: readonly number[];
  readonly #scanner = new BoundaryScanner(
    (boundary) => this.#meet(boundary),
    (start, end) => this.#meetTag(start, end),
  );
  readonly #places = new CutPositions();
  readonly #atomic: AtomicSpans;
  readonly #barred: (at: number, maxChars: number) => number;
  /** Boundaries inside an element that is open: places to cut only if it gets too long. */
  #inside: Boundary[] = [];
  /** Text from `#start` on. */
  #pending = "";
  #start = 0;
  /** Offset behind the last character that was read. */
  #end = 0;
  /** Offset behind the last character whose meaning is known: a possible tag is not counted until it is one. */
  #settled = 0;
  #count = 0;
  /** The dictionary found no cut within the limit: more text behind it changes nothing. */
  #hasTriedWords = false;
  /** A cut inside a word looks at the whole piece, so it is not tried again before this offset. */
  #nextTryInside = 0;
  #out: Segment[] = [];

  constructor(options: SegmenterOptions = {}) {
    this.#maxChars = Math.max(options.maxChars ?? 300, 1);
    this.#firstMaxChars = Math.min(Math.max(options.firstMaxChars ?? 100, 1), this.#maxChars);
    this.#minChars = options.minChars ?? MIN_CHARS;
    this.#atomic = new AtomicSpans(this.#maxChars);
    this.#barred = options.placeBefore ?? ((at) => at);
  }

  /** UTF-16 code units that were pushed and are in no segment yet. */
  get pendingChars(): number {
    return this.#pending.length;
  }

  /** Segments cut so far. */
  get segmentCount(): number {
    return this.#count;
  }

  /** The segments that this text completes. */
  push(text: string): Segment[] {
    this.#pending += text;
    for (let at = 0; at < text.length; ) {
      const start = this.#end;
      if (this.#passLetters(text, at) === 0) this.#character(text.codePointAt(at) ?? 0);
      at += this.#end - start;
    }
    return this.#take();
  }

  /**
   * The text stands still: cuts what is pending at its last boundary of at least this rank; none = []. A mark at the
   * very end counts ("Hello there."), but for what may go on: "Dr.", "U.S.", "3.". Never cuts inside a word, a tag or
   * an element.
   */
  cutNow(rank: "sentence" | "clause" | "word"): Segment[] {
    const end = this.#scanner.breakAtEnd(this.#end);
    const isGood =
      end !== null &&
      (end.rank === "sentence" || end.rank === rank || (end.rank === "clause" && rank === "word"));
    let at = Math.max(this.#places.lastOfAtLeast(rank), isGood && this.#isOpenTo(end) ? end.at : -1);
    if (rank === "word") at = Math.max(at, this.#stalledWordStart(at));
    if (at > this.#start) this.#cut(at);
    return this.#take();
  }

  /** Speak what is there: everything pending becomes segments, unless it is white space only (that waits). */
  flush(): Segment[] {
    this.#scanner.finish();
    if (!isBlank(this.#pending)) this.#cut(this.#end);
    return this.#take();
  }

  /** The text is complete: like `flush`, but white space that is left over is dropped. */
  end(): Segment[] {
    const segments = this.flush();
    this.#start += this.#pending.length;
    this.#pending = "";
    return segments;
  }

  #take(): Segment[] {
    const segments = this.#out;
    if (segments.length > 0) this.#out = [];
    return segments;
  }

  /** Letters within a word, up to where the piece gets too long, need no more than the scanner's short way. */
  #passLetters(text: string, from: number): number {
    const room = Math.min(this.#start + this.#limit(), this.#atomic.openAt + this.#maxChars) - this.#end;
    if (room <= 0) return 0;
    const passed = this.#scanner.passLetters(text, from, this.#end, room);
    if (passed === 0) return 0;
    this.#end += passed;
    this.#settled = this.#end;
    return passed;
  }

  #character(codePoint: number): void {
    const index = this.#end;
    this.#end += unitsOf(codePoint);
    this.#scanner.step(codePoint, index);
    this.#settled = this.#scanner.settledTo(this.#end);
    if (this.#settled - this.#atomic.openAt > this.#maxChars) {
      this.#atomic.advance(this.#settled);
      this.#meetInside();
    }
    while (this.#settled - this.#start > this.#limit() && this.#cutLongPiece());
  }

  /** Longest piece: the first one or a later one. */
  #limit(): number {
    return this.#count === 0 ? this.#firstMaxChars : this.#maxChars;
  }

  #wantedChars(): number {
    return this.#minChars[Math.min(this.#count, this.#minChars.length - 1)] ?? 0;
  }

  #meetTag(start: number, end: number): void {
    const openAt = this.#atomic.openAt;
    this.#atomic.tag(this.#pending.slice(start - this.#start, end - this.#start), start, end);
    if (this.#atomic.openAt > openAt) this.#meetInside();
  }

  #meetInside(): void {
    for (const boundary of this.#inside.splice(0)) this.#meet(boundary);
  }

  #meet(boundary: Boundary): void {
    // Nothing to speak before it ("***", an opening dash): that stays with what follows.
    if (boundary.spokenEnd <= this.#start || boundary.at <= this.#start) return;
    if (boundary.at > this.#atomic.openAt) this.#inside.push(boundary);
    else if (this.#placeBefore(boundary.at) === boundary.at) this.#accept(boundary);
  }

  /** The last place up to `at` where nothing is cut that belongs together. */
  #placeBefore(at: number): number {
    let place = at;
    for (;;) {
      const before = this.#barred(this.#atomic.placeBefore(place), this.#maxChars);
      if (before === place) return place;
      place = before;
    }
  }

  #accept(boundary: Boundary): void {
    if (boundary.rank === "sentence") {
      const before = this.#places.last("sentence");
      if (before > this.#start && this.#lengthTo(boundary.at) > this.#limit()) this.#cut(before);
      if (boundary.isParagraph || this.#isLongEnough(boundary.at)) {
        this.#cut(boundary.at);
        return;
      }
    }
    this.#places.add(boundary);
  }

  #isLongEnough(at: number): boolean {
    const wanted = this.#wantedChars();
    return at - this.#start >= wanted && this.#lengthTo(at) >= wanted;
  }

  /** UTF-16 code units from the start of the piece, without white space at the end. */
  #lengthTo(at: number): number {
    return this.#pending.slice(0, at - this.#start).trimEnd().length;
  }

  /** False where there is no place to cut yet. White space never makes a piece too long. */
  #cutLongPiece(): boolean {
    if (this.#scanner.isAfterSpace) return false;
    const at = this.#bestCut();
    if (at <= this.#start) return false;
    this.#cut(at);
    return true;
  }

  #bestCut(): number {
    const sentence = this.#places.last("sentence");
    if (sentence > this.#start) return sentence;
    const max = this.#start + this.#limit();
    const clause = this.#places.last("clause", max);
    // A clause that leaves a crumb is worse than a cut between words.
    if (clause - this.#start >= this.#limit() / 4) return clause;
    const spaced = Math.max(clause, this.#places.last("word", max));
    const best = Math.max(spaced, this.#unspacedCut(Math.max(spaced, this.#start), max));
    if (best > this.#start) return best;
    // Overdue: one long word, so the first place behind it.
    return this.#places.first("clause") ?? this.#places.first("word") ?? this.#cutInsideWord();
  }

  /** The last word of a script without spaces that starts in `after`..`max`; -1 = none. */
  #unspacedCut(after: number, max: number): number {
    if (this.#scanner.unspacedEnd <= after || this.#hasTriedWords) return -1;
    const at = this.#wordStart(max - Math.min(DICTIONARY_CONTEXT, this.#limit() / 4));
    if (at > after) return at;
    this.#hasTriedWords = true;
    return -1;
  }

  /** The last word of such a script that is sure to start there, whatever text follows. */
  #stalledWordStart(after: number): number {
    if (this.#scanner.unspacedEnd <= Math.max(after, this.#start)) return -1;
    const at = this.#wordStart(this.#settled - SHORT_CONTEXT);
    const isLongWorded = LONG_WORDED.test(this.#pending.charAt(at - this.#start));
    return isLongWorded ? this.#wordStart(this.#settled - DICTIONARY_CONTEXT) : at;
  }

  #wordStart(max: number): number {
    const text = this.#pending.slice(0, this.#settled - this.#start);
    return this.#placeBefore(this.#start + lastUnspacedWordStart(text, max - this.#start));
  }

  #cutInsideWord(): number {
    const length = this.#settled - this.#start;
    if (length < Math.max(4 * this.#maxChars, 1000) || this.#settled < this.#nextTryInside) return -1;
    const weak = this.#places.last("weak", this.#settled);
    if (weak > this.#start) return weak;
    const at = this.#placeBefore(this.#start + lastGraphemeStart(this.#pending.slice(0, length)));
    if (at > this.#start) return at;
    // One grapheme as long as that: look again when it is twice as long, so that time stays linear.
    this.#nextTryInside = this.#settled + length;
    return -1;
  }

  /** Whether the stalled text may be cut at its end: something to speak, nothing whole, no half of a line end. */
  #isOpenTo(end: Boundary): boolean {
    if (end.spokenEnd <= this.#start || this.#pending.charAt(end.at - this.#start - 1) === "\r") return false;
    return this.#placeBefore(end.at) === end.at;
  }

  #cut(at: number): void {
    const length = at - this.#start;
    this.#out.push({ text: this.#pending.slice(0, length), start: this.#start, end: at });
    this.#pending = this.#pending.slice(length);
    this.#start = at;
    this.#count += 1;
    this.#hasTriedWords = false;
    this.#nextTryInside = 0;
    this.#places.forget(at);
    this.#atomic.forget(at);
  }
}
