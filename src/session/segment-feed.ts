/**
 * The segment that is being pushed to the listeners now: takes its run's chunks one by one, trims the silence at both
 * ends, and turns audio into slices and alignment into events on the session's timeline, never further than it is
 * asked to.
 */
import { GatewayError } from "../errors.ts";
import type { EventKind } from "../protocol/vocabulary.ts";
import { isBlank } from "../text/characters.ts";
import { TICKS_PER_SECOND } from "../timing/ticks.ts";
import type { EventWriter } from "./event-writer.ts";
import { FeedEvents } from "./feed-events.ts";
import { FeedTiming } from "./feed-timing.ts";
import { TICKS_PER_MS } from "./playhead.ts";
import type { Run } from "./segment-run.ts";
import { type SilenceLimit, type Slice, Source } from "./source.ts";
import type { Utterance } from "./utterance.ts";

/** Silence left before the first sound and behind the last: consonants begin and end below the level of silence. */
const KEEP_LEAD_TICKS = 20 * TICKS_PER_MS;
const KEEP_TAIL_TICKS = 60 * TICKS_PER_MS;
/** Where a sound meets another without silence between, it rises and falls in this. */
const FADE_TICKS = 3 * TICKS_PER_MS;

/** Of a response that is not complete this much stays in hand: the end of a word is known only when it has come. */
const TIMED_AHEAD_TICKS = 250 * TICKS_PER_MS;

/** How far ahead of the audio pushed its timing is read: a slice with its surplus, and the rest of a long word. */
const READ_AHEAD_TICKS = 1500 * TICKS_PER_MS;

export interface SegmentFeedOptions {
  readonly run: Run;
  readonly utterance: Utterance;
  /** What the feed before has left on closing. */
  readonly store: Uint8Array | null;
  /** Where on the timeline the segment begins. */
  readonly baseTicks: number;
  readonly writer: EventWriter;
  /**
   * How far ahead of the audio pushed its timing is read, where it has come: a word is known to be whole only when its
   * last character has, and is to be told before its first frame.
   */
  readonly lookaheadTicks: number;
  /** Most silence taken off each end. */
  readonly trimTicks: number;
  /** Whether anybody has ever asked for this kind of event. */
  readonly wants: (kind: EventKind) => boolean;
  /** Whether another utterance waits for the end of this one. */
  readonly isFollowed: () => boolean;
}

export class SegmentFeed {
  readonly run: Run;
  readonly utterance: Utterance;
  readonly #source: Source;
  readonly #events: FeedEvents;
  /** null where nobody wants to know. */
  readonly #timing: FeedTiming | null;
  readonly #lookaheadTicks: number;
  readonly #trimTicks: number;
  readonly #isFollowed: () => boolean;
  #pushedTicks = 0;
  #droppedLeadTicks = 0;
  #droppedTailTicks = 0;
  #isLeadTrimmed = false;
  #isTailTrimmed = false;

  constructor(options: SegmentFeedOptions) {
    const { run, utterance } = options;
    this.run = run;
    this.utterance = utterance;
    this.#lookaheadTicks = options.lookaheadTicks;
    this.#trimTicks = options.trimTicks;
    this.#isFollowed = options.isFollowed;
    this.#source = new Source(run.sourceFormat, options.store);
    const { writer, baseTicks, wants } = options;
    this.#events = new FeedEvents({ utterance, writer, baseTicks, wants });
    this.#timing = run.wantsTiming ? new FeedTiming(run, utterance, this.#events) : null;
  }

  /** Audio taken from the run and not pushed yet. */
  get bufferedTicks(): number {
    return this.#source.receivedTicks - this.#droppedLeadTicks - this.#droppedTailTicks - this.#pushedTicks;
  }

  /** Nothing left to push and nothing will come. */
  get isOver(): boolean {
    return this.run.isComplete && !this.run.hasChunk && !this.#source.hasAudio;
  }

  /** Silence at the end of what was pushed. */
  get trailingSilenceTicks(): number {
    return this.#source.trailingSilenceTicks;
  }

  /**
   * The next slice of at most `maxTicks`, or undefined when there is none now; longer by `surplusTicks` where so much
   * more has come that the timing of what follows is known. Throws what breaks the audio.
   */
  next(maxTicks: number, surplusTicks = 0): Slice | undefined {
    if (!this.#look()) return undefined;
    const slice = this.#source.take(maxTicks + this.#surplus(maxTicks, surplusTicks));
    if (slice !== undefined) this.#pushedTicks += slice.ticks;
    return slice;
  }

  /** Whether anything has come, or the end, that was not looked at. */
  get hasUnread(): boolean {
    return this.run.hasChunk || (this.run.isComplete && !this.#isTailTrimmed);
  }

  /** Reads what has come, so that it is told in time, and takes nothing. Throws what breaks the audio. */
  look(): void {
    if (this.hasUnread) this.#look();
  }

  /** False where there is nothing to take yet. */
  #look(): boolean {
    this.#lookAhead(this.#lookaheadTicks);
    this.#timing?.readUpTo(this.#timedToSeconds);
    if (!this.#isLeadTrimmed && !this.#trimLead()) return false;
    if (!this.#isTailTrimmed && this.run.isComplete && !this.run.hasChunk) {
      this.#finishTiming();
      this.#trimTail();
      this.#endCues();
    } else this.#events.makeCues();
    return true;
  }

  #surplus(maxTicks: number, surplusTicks: number): number {
    const isAll = this.run.isComplete && !this.run.hasChunk;
    const spare = this.bufferedTicks - maxTicks - (isAll ? 0 : TIMED_AHEAD_TICKS);
    // In one go or not at all, unless it is the rest.
    return spare >= surplusTicks ? surplusTicks : isAll ? Math.max(0, spare) : 0;
  }

  /** Writes the events that belong before `edgeTicks`, the end of the audio pushed. */
  tellUpTo(edgeTicks: number): void {
    this.#events.tellUpTo(edgeTicks);
  }

  /** All audio is pushed: tells what is left to tell. Throws when the audio ended inside a sample. */
  finish(): void {
    this.#source.finish();
    this.#finishTiming();
    this.#events.tellAll(this.#pushedTicks);
    if (
      this.#pushedTicks + this.#droppedLeadTicks === 0 &&
      /[\p{L}\p{N}]/u.test(this.run.segment.text) &&
      this.run.error === null
    ) {
      throw new GatewayError(
        "upstream_truncated",
        "Upstream ended the speech early: it sent no audio at all",
      );
    }
  }

  /**
   * The speech is cut here: takes what has come and was not pushed, with its timing, so that it can be spoken later.
   * The feed is over then; the slices are good until it is closed.
   */
  takeRest(): Slice[] {
    this.#lookAhead(Number.POSITIVE_INFINITY);
    this.#timing?.readUpTo(Number.POSITIVE_INFINITY);
    if (this.run.isComplete) this.#finishTiming();
    const slices: Slice[] = [];
    for (;;) {
      const slice = this.#source.take(TICKS_PER_SECOND);
      if (slice === undefined) return slices;
      slices.push(slice);
    }
  }

  /** Returns memory that the next feed can be made with: what was taken is no longer good then. */
  close(): Uint8Array | null {
    return this.#source.close();
  }

  #finishTiming(): void {
    this.#timing?.finish(this.#source.receivedTicks / TICKS_PER_SECOND);
  }

  /** Up to where the timing is read, seconds of the response: cues are made of all words that are there. */
  get #timedToSeconds(): number {
    if (this.utterance.cues !== null) return Number.POSITIVE_INFINITY;
    return (this.#pushedTicks + this.#droppedLeadTicks + READ_AHEAD_TICKS) / TICKS_PER_SECOND;
  }

  #lookAhead(ticks: number): void {
    while (this.bufferedTicks < ticks || !this.#source.hasAudio) {
      const chunk = this.run.take();
      if (chunk === undefined) return;
      this.#source.push(chunk.audio);
      this.#events.preSkipTicks = this.#source.preSkipTicks;
      this.#timing?.push(chunk, this.#source.receivedTicks / TICKS_PER_SECOND);
    }
  }

  /** Without trimming an upstream's audio stays as it is; what was kept was cut here, in the middle of a sound. */
  get #mayFade(): boolean {
    const { segment } = this.run;
    return this.#trimTicks > 0 || (this.utterance.isResumed && segment.start < this.utterance.keptEnd);
  }

  /** False while all that came is silent and may all have to go. */
  #trimLead(): boolean {
    // Not more than is read ahead, or silence would be waited for that can't come.
    const maxTicks = Math.min(this.#trimTicks, this.#lookaheadTicks);
    const limit: SilenceLimit = { maxTicks, keepTicks: KEEP_LEAD_TICKS };
    const isAll = this.run.isComplete && !this.run.hasChunk;
    const dropped = this.#source.dropLeadingSilence(limit, isAll);
    if (dropped === null) return false;
    this.#isLeadTrimmed = true;
    this.#droppedLeadTicks = dropped;
    this.#events.dropLead(dropped);
    if (this.#mayFade) this.#source.fadeIn(FADE_TICKS);
    return true;
  }

  /** What was told already stays true: no character may end behind the audio. */
  #trimTail(): void {
    this.#isTailTrimmed = true;
    const toldTicks = Math.max(0, this.#events.toldEndTicks - this.#pushedTicks);
    const room = this.bufferedTicks - toldTicks;
    if (room > 0) {
      this.#droppedTailTicks = this.#source.dropTrailingSilence({
        maxTicks: Math.min(this.#trimTicks, room),
        keepTicks: KEEP_TAIL_TICKS,
      });
    }
    // Kept audio that ends where the upstream's did was not cut there.
    const isUncut = this.#trimTicks === 0 && this.utterance.isExhausted;
    if (this.#mayFade && !isUncut) this.#source.fadeOut(FADE_TICKS);
    this.#events.endAt(this.#pushedTicks + this.bufferedTicks);
  }

  #endCues(): void {
    const { run, utterance } = this;
    const hasMoreText = !utterance.isTextEnded || !isBlank(utterance.textBehind(run.segment));
    this.#events.endCues(run.segment, !hasMoreText && !this.#isFollowed());
  }
}
