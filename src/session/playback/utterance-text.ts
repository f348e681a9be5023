/** The text of an utterance as it comes: cleaned, mapped to the client's, cut into the segments that are asked for. */
import { TagBalance } from "../../text/balance.ts";
import { isBlank } from "../../text/characters.ts";
import { type Segment, Segmenter, type SegmenterOptions } from "../../text/segmenter.ts";
import type { SpokenText } from "../../text/spoken-text.ts";
import { TokenPace } from "../../text/token-pace.ts";
import { SegmentQueue, type StagedSegment } from "./segment-queue.ts";

/**
 * Longest piece of a whole text, UTF-16 units: texts up to here are one request, so that the upstream hears all of them
 * at once; longer ones are cut at sentence ends, so that an interruption does not pay for what is far ahead.
 */
const WHOLE_MAX_CHARS = 800;

export class UtteranceText {
  /** What is spoken, with its map to the client's text. */
  readonly spoken: SpokenText;
  readonly segments: SegmentQueue;
  /** How fast tokens come. */
  readonly pace = new TokenPace();
  /** Cuts text that comes in tokens. */
  readonly #segmenter: Segmenter | null;
  readonly #balance = new TagBalance();
  #isEnded = false;
  #half = "";
  #leftOut = 0;
  #idleFromMs: number;
  #askedEnd = 0;

  private constructor(spoken: SpokenText, segmenter: Segmenter | null, acceptedMs: number) {
    this.spoken = spoken;
    this.#segmenter = segmenter;
    this.#idleFromMs = acceptedMs;
    this.segments = new SegmentQueue(spoken, acceptedMs);
  }

  /** All of it is there, and cut only where it is long. */
  static whole(spoken: SpokenText, text: string, acceptedMs: number): UtteranceText {
    const whole = new UtteranceText(spoken, null, acceptedMs);
    whole.#balance.push(text);
    spoken.append(text);
    spoken.end();
    whole.#complete(wholeSegments(spoken), acceptedMs);
    return whole;
  }

  /** All of it is there, and asked for in one. */
  static dialogue(spoken: SpokenText, text: string, acceptedMs: number): UtteranceText {
    const whole = new UtteranceText(spoken, null, acceptedMs);
    spoken.append(text);
    whole.#complete([{ text, start: 0, end: text.length }], acceptedMs);
    return whole;
  }

  /** It comes in tokens. */
  static tokens(spoken: SpokenText, acceptedMs: number): UtteranceText {
    return new UtteranceText(spoken, new Segmenter({ placeBefore: placesOf(spoken) }), acceptedMs);
  }

  /** Everything the client sent. */
  get client(): string {
    return this.spoken.client;
  }
  get isEnded(): boolean {
    return this.#isEnded;
  }
  /** Since when no text has come, ms. */
  get idleFromMs(): number {
    return this.#idleFromMs;
  }
  /** First half of a surrogate pair whose other half comes with the next text; "" = none. */
  get half(): string {
    return this.#half;
  }
  /** Client's offset up to which it was asked of the upstream. */
  get askedEnd(): number {
    return this.#askedEnd;
  }
  /** Text that was not asked of the upstream yet, UTF-16 code units; what cleaning took out waits for nothing. */
  get pendingChars(): number {
    const next = this.segments.start ?? this.spoken.spoken.length - (this.#segmenter?.pendingChars ?? 0);
    return this.spoken.spoken.length - next + this.spoken.heldChars;
  }
  /** Text that is in no segment yet. */
  get hasUncutText(): boolean {
    return (this.#segmenter?.pendingChars ?? 0) + this.spoken.heldChars > 0;
  }
  /** Some of it waits for what follows it. */
  get hasHeldText(): boolean {
    return this.spoken.heldChars > 0;
  }

  /** Halves of surrogate pairs that came without their other half: they are not in the text, and its client counts them. */
  get leftOut(): number {
    return this.#leftOut;
  }

  /** What is held has no other half. */
  leaveHalfOut(): void {
    this.noteLeftOut(this.#half.length);
    this.#half = "";
  }

  noteLeftOut(count: number): void {
    this.#leftOut += count;
  }

  holdHalf(half: string): void {
    this.#half = half;
  }

  append(text: string, nowMs: number): void {
    this.#balance.push(text);
    this.pace.token(nowMs);
    this.#idleFromMs = nowMs;
    this.#push(this.spoken.append(text), nowMs);
  }

  /** Speaks what is there without waiting for the end of a sentence; of markup that is open, what stands before it. */
  flush(nowMs: number): void {
    if (this.#balance.isOpen) {
      this.cutNow("word", nowMs);
      return;
    }
    this.#push(this.spoken.flush(), nowMs);
    this.segments.add(this.#segmenter?.flush() ?? [], nowMs);
  }

  /** No more comes. Idempotent. */
  end(nowMs: number): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#push(this.spoken.end(), nowMs);
    this.segments.add(this.#segmenter?.end() ?? [], nowMs);
  }

  /** The input stalls: cuts at the best boundary of at least this rank; true if any segment waits now. */
  cutNow(rank: "sentence" | "clause" | "word", nowMs: number): boolean {
    if (rank === "word") this.#push(this.spoken.stall("short"), nowMs);
    this.segments.add(this.#segmenter?.cutNow(rank) ?? [], nowMs);
    return !this.segments.isEmpty;
  }

  /**
   * Tokens stay away, and what is held back is all there is: speaks what of it reads as whole; true as for `cutNow`.
   * `isPaused`: its speaker was asked to pause, and cannot send what would decide it.
   */
  flushHeld(nowMs: number, isPaused: boolean): boolean {
    this.#push(isPaused ? this.spoken.flush() : this.spoken.stall("long"), nowMs);
    return this.cutNow("word", nowMs);
  }

  /** The oldest segment that was not asked for. */
  take(): StagedSegment | undefined {
    const segment = this.segments.take();
    if (segment !== undefined) this.#askedEnd = Math.max(this.#askedEnd, this.spoken.clientEnd(segment.end));
    return segment;
  }

  /** It goes on behind a cut with `rest`, before all that waits. */
  goOn(rest: readonly Segment[], nowMs: number): void {
    this.segments.goOn(rest, nowMs);
    this.#idleFromMs = nowMs;
  }

  /** What stands before `spokenStart`, a place between words, was spoken elsewhere. `restOf`: what is left of a segment. */
  skipTo(spokenStart: number, restOf: (segment: Segment) => Segment | null, nowMs: number): void {
    const isUncut = (): boolean =>
      spokenStart > this.spoken.spoken.length - (this.#segmenter?.pendingChars ?? 0);
    if (isUncut()) this.cutNow("word", nowMs);
    if (isUncut()) this.flush(nowMs);
    this.segments.skip(restOf, nowMs);
  }

  /** Elements that were opened and not closed, or closed and not opened. */
  unbalancedTags(): readonly string[] {
    return this.#balance.end();
  }

  #complete(segments: readonly Segment[], nowMs: number): void {
    this.segments.noteArrival(nowMs);
    this.segments.add(segments, nowMs);
    this.#isEnded = true;
  }

  #push(spoken: string, nowMs: number): void {
    this.segments.noteArrival(nowMs);
    if (spoken !== "") this.segments.add(this.#segmenter?.push(spoken) ?? [], nowMs);
  }
}

/** Where a text may be cut: not inside what is said for something else. */
function placesOf(text: SpokenText): Required<SegmenterOptions>["placeBefore"] {
  return (at, maxChars) => text.placeBefore(at, maxChars);
}

function wholeSegments(text: SpokenText): Segment[] {
  const { spoken } = text;
  if (isBlank(spoken)) return [];
  if (spoken.length <= WHOLE_MAX_CHARS) return [{ text: spoken, start: 0, end: spoken.length }];
  const segmenter = new Segmenter({
    firstMaxChars: WHOLE_MAX_CHARS,
    maxChars: WHOLE_MAX_CHARS,
    minChars: [WHOLE_MAX_CHARS],
    placeBefore: placesOf(text),
  });
  return [...segmenter.push(spoken), ...segmenter.end()];
}
