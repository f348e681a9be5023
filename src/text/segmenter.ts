/**
 * Cuts a text that comes token by token into the pieces that are spoken one by one: at sentence ends that are known to
 * be ends, else, where a piece gets too long, at a clause, else between words.
 */
import { type Boundary, BoundaryScanner } from "./boundaries.ts";
import { isBlank } from "./characters.ts";
import { CodePointReader } from "./code-points.ts";
import { lastGraphemeStart, lastUnspacedWordStart } from "./unspaced.ts";

export interface SegmenterOptions {
  /** Longest first piece, UTF-16 code units without the white space at its end: short, so that speech starts early. */
  readonly firstMaxChars?: number;
  /** Longest later piece. Longer ones sound better and start later. */
  readonly maxChars?: number;
}

/** A piece to be spoken. Offsets are UTF-16, into all text pushed so far, `end` exclusive. */
export interface Segment {
  readonly text: string;
  readonly start: number;
  readonly end: number;
}

/** UTF-16 code units behind a cut that the dictionary sees: with less it finds other words than in the whole text. */
const DICTIONARY_CONTEXT = 12;

/**
 * Any split of a text into pushes gives the same segments, and their texts joined are the text. White space stays at
 * the end of the segment before it; before the first word, and behind a flush, at the start of the segment that
 * follows. The one thing left out is white space between a flush and the end: there is nothing to speak in it.
 *
 * A word longer than the limits stays whole up to four times `maxChars` (at least 1000); then it is cut between
 * graphemes. Time is linear in the text, memory bounded by the longest segment.
 */
export class Segmenter {
  readonly #firstMaxChars: number;
  readonly #maxChars: number;
  readonly #reader = new CodePointReader((codePoint, index) => this.#character(codePoint, index));
  readonly #scanner = new BoundaryScanner((boundary) => this.#meet(boundary));
  /** Text from `#start` on. */
  #pending = "";
  #start = 0;
  /** Offset behind the last character whose meaning is known: a possible tag is not counted until it is one. */
  #settled = 0;
  #isFirst = true;
  /** Places behind `#start` where a piece that gets too long may be cut. */
  #clauses: Boundary[] = [];
  #words: Boundary[] = [];
  #weak: Boundary[] = [];
  /** Cuts that have to look at the whole piece are not tried again before this offset. */
  #nextTry = 0;
  #out: Segment[] = [];

  constructor(options: SegmenterOptions = {}) {
    this.#maxChars = Math.max(options.maxChars ?? 300, 1);
    this.#firstMaxChars = Math.min(Math.max(options.firstMaxChars ?? 100, 1), this.#maxChars);
  }

  /** UTF-16 code units that were pushed and are in no segment yet. */
  get pendingChars(): number {
    return this.#pending.length;
  }

  /** The segments that this text completes. */
  push(text: string): Segment[] {
    this.#pending += text;
    this.#reader.push(text);
    return this.#take();
  }

  /** Speak what is there: everything pending becomes segments, unless it is white space only (that waits). */
  flush(): Segment[] {
    this.#scanner.finish();
    const length = this.#reader.offset - this.#start;
    if (!isBlank(this.#pending.slice(0, length))) this.#cut(this.#start + length);
    return this.#take();
  }

  /** The text is complete: like `flush`, but white space that is left over is dropped. */
  end(): Segment[] {
    this.#reader.end();
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

  #character(codePoint: number, index: number): void {
    this.#scanner.step(codePoint, index);
    this.#settled = this.#scanner.settledTo(this.#reader.offset);
    while (this.#settled - this.#start > this.#limit && this.#cutLongPiece());
  }

  get #limit(): number {
    return this.#isFirst ? this.#firstMaxChars : this.#maxChars;
  }

  #meet(boundary: Boundary): void {
    // Nothing to speak before it ("***", an opening dash): that stays with what follows.
    if (boundary.spokenEnd <= this.#start || boundary.at <= this.#start) return;
    if (boundary.rank === "sentence") this.#cut(boundary.at);
    else if (boundary.rank === "clause") this.#clauses.push(boundary);
    else if (boundary.rank === "word") this.#words.push(boundary);
    else this.#weak.push(boundary);
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
    const max = this.#start + this.#limit;
    const clause = lastUpTo(this.#clauses, max);
    // A clause that leaves a crumb is worse than a cut between words.
    if (clause - this.#start >= this.#limit / 4) return clause;
    const spaced = Math.max(clause, lastUpTo(this.#words, max));
    const best = Math.max(spaced, this.#unspacedCut(Math.max(spaced, this.#start), max));
    if (best > this.#start) return best;
    // Overdue: one long word, so the first place behind it.
    const next = this.#clauses[0] ?? this.#words[0];
    return next?.at ?? this.#cutInsideWord();
  }

  /** The last word of a script without spaces that starts in `after`..`max`; -1 = none. */
  #unspacedCut(after: number, max: number): number {
    if (this.#scanner.unspacedEnd <= after || this.#settled < this.#nextTry) return -1;
    const text = this.#pending.slice(0, this.#settled - this.#start);
    const context = Math.min(DICTIONARY_CONTEXT, this.#limit / 4);
    const at = this.#start + lastUnspacedWordStart(text, max - this.#start - context);
    if (at > after) return at;
    this.#nextTry = this.#settled + Math.ceil(this.#limit / 2);
    return -1;
  }

  #cutInsideWord(): number {
    const length = this.#settled - this.#start;
    if (length < Math.max(4 * this.#maxChars, 1000) || this.#settled < this.#nextTry) return -1;
    const weak = lastUpTo(this.#weak, this.#settled);
    if (weak > this.#start) return weak;
    const at = this.#start + lastGraphemeStart(this.#pending.slice(0, length));
    if (at > this.#start && at >= this.#scanner.tagEnd) return at;
    // One grapheme as long as that: look again when it is twice as long, so that time stays linear.
    this.#nextTry = this.#settled + length;
    return -1;
  }

  #cut(at: number): void {
    const length = at - this.#start;
    this.#out.push({ text: this.#pending.slice(0, length), start: this.#start, end: at });
    this.#pending = this.#pending.slice(length);
    this.#start = at;
    this.#isFirst = false;
    this.#nextTry = 0;
    this.#clauses = behind(this.#clauses, at);
    this.#words = behind(this.#words, at);
    this.#weak = behind(this.#weak, at);
  }
}

/** The last place at or before `max`; -1 = none. */
function lastUpTo(boundaries: readonly Boundary[], max: number): number {
  for (let i = boundaries.length - 1; i >= 0; i--) {
    const at = boundaries[i]?.at ?? 0;
    if (at <= max) return at;
  }
  return -1;
}

/** The places that still have something to speak between the cut and them. */
function behind(boundaries: Boundary[], cut: number): Boundary[] {
  return boundaries.filter((boundary) => boundary.at > cut && boundary.spokenEnd > cut);
}
