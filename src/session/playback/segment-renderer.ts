/**
 * Places a segment on the timeline: takes its attempt's chunks one by one, trims the silence at both
 * ends, and turns audio into slices and alignment into events on the session's timeline, never further than it is
 * asked to.
 */
import { GatewayError } from "../../errors.ts";
import type { Clock } from "../../kit/clock.ts";
import type { Counters } from "../../metrics/counters.ts";
import type { EventKind } from "../../protocol/vocabulary.ts";
import { isBlank } from "../../text/characters.ts";
import type { Aligner } from "../../timing/aligner.ts";
import { TICKS_PER_MS, TICKS_PER_SECOND } from "../../timing/ticks.ts";
import type { EventWriter } from "../events/event-writer.ts";
import { SegmentEvents } from "../events/segment-events.ts";
import { READ_AHEAD_TICKS, SegmentTimes, TIMED_AHEAD_TICKS } from "../events/segment-times.ts";
import { remainderOf } from "../remainder.ts";
import { type SilenceLimit, type Slice, Source } from "../source.ts";
import type { Attempt } from "../synthesis/attempt.ts";
import type { CarryOver } from "./carry-over.ts";
import { type KnownEnd, knownEndOf } from "./known-end.ts";
import type { StagedSegment } from "./segment-queue.ts";
import { beginsWithBreak, lastBreakTicks, spliceTextOf } from "./splice.ts";
import type { Utterance } from "./utterance.ts";

/** Silence left before the first sound and behind the last: consonants begin and end below the level of silence. */
const KEEP_LEADING_TICKS = 20 * TICKS_PER_MS;
const KEEP_TAIL_TICKS = 60 * TICKS_PER_MS;
/** Where a sound meets another without silence between, it rises and falls in this. */
const FADE_TICKS = 3 * TICKS_PER_MS;

/** A word is whole without so much of its end: a resampler holds back as much, and times are rounded. */
const WORD_END_TICKS = 10 * TICKS_PER_MS;

/** A new voice gets its gain from its first audio: so much is waited for, where little of it is speech. */
const LEVEL_HELD_TICKS = 1000 * TICKS_PER_MS;

/** Most audio that is held back because it may be part of a word: no word is longer. */
const MAX_HELD_TICKS = 1000 * TICKS_PER_MS;

export interface SegmentRendererOptions {
  readonly attempt: Attempt;
  readonly utterance: Utterance;
  /** What the segments before have left, and this one leaves to later ones. */
  readonly carryOver: CarryOver;
  /** Where on the timeline the segment begins. */
  readonly baseTicks: number;
  readonly writer: EventWriter;
  /** Most audio in hand: how far ahead of what is rendered anything of the response may be taken from its attempt. */
  readonly aheadTicks: number;
  /** Most silence taken off each end. */
  readonly trimTicks: number;
  /** Whether anybody has ever asked for this kind of event. */
  readonly wasWanted: (kind: EventKind) => boolean;
  /** Whether another utterance waits for the end of this one. */
  readonly isFollowed: () => boolean;
  readonly aligner: Aligner;
  readonly clock: Clock;
  readonly counters: Counters;
  /** Times have come that no chunk has brought. */
  readonly onTimes: () => void;
}

/** How much of the audio that is here is wanted, ticks. */
interface Wanted {
  /** At most. */
  readonly maxTicks: number;
  /** So much of it at once, though it ends in the middle of a word: listeners have nothing else. */
  readonly neededTicks: number;
  /** So much more where the timing behind it is known. */
  readonly surplusTicks: number;
}

/** A response that broke off: not recovered yet; all its text is there; its rest comes with another response. */
type BreakState = "open" | "whole" | "brokeOff";

export class SegmentRenderer {
  readonly attempt: Attempt;
  readonly utterance: Utterance;
  #segment: StagedSegment;
  #breakState: BreakState = "open";
  readonly #carryOver: CarryOver;
  readonly #source: Source;
  readonly events: SegmentEvents;
  /** null where nobody wants to know. */
  readonly #times: SegmentTimes | null;
  readonly #aheadTicks: number;
  readonly #trimTicks: number;
  readonly #isFollowed: () => boolean;
  readonly #baseTicks: number;
  #renderedTicks = 0;
  #droppedLeadingTicks = 0;
  #droppedTailTicks = 0;
  #behindBreakTicks = 0;
  #isStartTrimmed = false;
  #isTailTrimmed = false;

  constructor(options: SegmentRendererOptions) {
    const { attempt, utterance } = options;
    this.attempt = attempt;
    this.utterance = utterance;
    this.#segment = attempt.segment;
    this.#baseTicks = options.baseTicks;
    this.#aheadTicks = options.aheadTicks;
    this.#trimTicks = options.trimTicks;
    this.#isFollowed = options.isFollowed;
    this.#carryOver = options.carryOver;
    const leveller = attempt.isLevelled
      ? null
      : (utterance.levels?.levellerOf(attempt.standIn ?? null) ?? null);
    this.#source = new Source(attempt.sourceFormat, this.#carryOver.store, leveller);
    const { writer, baseTicks, wasWanted } = options;
    this.events = new SegmentEvents({ utterance, writer, baseTicks, wasWanted });
    this.#times = attempt.wantsTiming ? new SegmentTimes({ ...options, events: this.events }) : null;
  }

  /** Audio taken from the attempt and not rendered yet. */
  get bufferedTicks(): number {
    return (
      this.#source.receivedTicks - this.#droppedLeadingTicks - this.#droppedTailTicks - this.#renderedTicks
    );
  }

  /** What is spoken of it: all that was asked for, unless the response broke off. */
  get segment(): StagedSegment {
    return this.#segment;
  }

  /** All of `segment` has come: the response did not break off, or it ends with the audio that is here. */
  get isWhole(): boolean {
    return this.attempt.isComplete && (this.attempt.error === null || this.#breakState !== "open");
  }

  /** The segment with the punctuation behind it: it asks for the pause that follows. */
  get spliceText(): string {
    return spliceTextOf(this.attempt.segment.text, this.#segment.text.length);
  }

  /** Nothing left to push and nothing will come. */
  get isOver(): boolean {
    return this.#hasAllCome && !this.#source.hasAudio && !this.#areWordsAwaited;
  }

  /**
   * Silence at the end of what was rendered, without a break that the text asks for there; where it broke off, all that was
   * heard behind the last whole word.
   */
  get trailingSilenceTicks(): number {
    const breakTicks = lastBreakTicks(this.#segment.text) ?? 0;
    return Math.max(this.#behindBreakTicks, this.#source.trailingSilenceTicks - breakTicks);
  }

  /**
   * The next slice, or undefined when there is none now: while more is to come it ends with a whole word, unless all of it
   * is needed, so that nothing is said twice where the response breaks off. Throws what breaks the audio.
   */
  next(wanted: Wanted): Slice | undefined {
    if (!this.#look() || !this.#isLevelKnown) return undefined;
    if (this.#areWordsAwaited && this.bufferedTicks <= 0 && wanted.neededTicks > 0) {
      this.#times?.hurry();
      this.#look();
    }
    const freeTicks = Math.min(this.#endTicks, Math.max(wanted.neededTicks, this.#wholeTicks()));
    const ticks = Math.min(wanted.maxTicks, freeTicks) + this.#surplus(wanted, freeTicks);
    if (ticks <= 0) return undefined;
    const slice = this.#source.take(ticks);
    if (slice === undefined) return undefined;
    this.#renderedTicks += slice.ticks;
    // A slice for a long lead may be longer than what was read ahead of it.
    this.#times?.readAhead(this.#passedTicks);
    return slice;
  }

  /** Whether anything has come that is to be looked at now, or the end. */
  get hasUnread(): boolean {
    if (this.attempt.hasChunk) {
      return this.bufferedTicks < (this.isUntimed ? this.#untimedTicks : this.#lookaheadTicks);
    }
    return this.attempt.isComplete && !this.#isTailTrimmed;
  }

  /** Reads what has come, so that its events leave in time, and gives no slice. Throws what breaks the audio. */
  look(): void {
    if (this.hasUnread) this.#look();
  }

  /** False where there is nothing to take yet. */
  #look(): boolean {
    this.#take(this.#lookaheadTicks);
    if (this.#hasAllCome && this.attempt.error === null) this.#times?.endAudio();
    if (!this.#isStartTrimmed && !this.#trimLeadingSilence()) return false;
    this.#times?.readAhead(this.#passedTicks);
    if (this.isUntimed) {
      this.#take(this.#untimedTicks);
      if (this.#hasAllCome && this.attempt.error === null) this.#times?.endAudio();
      this.#times?.readAhead(this.#passedTicks);
      if (!this.#hasAllCome || this.#areWordsAwaited)
        this.#times?.estimate(this.#passedTicks, this.#source.receivedTicks);
    }
    if (!this.#isTailTrimmed && this.#hasAllCome && !this.#areWordsAwaited) {
      this.#finishTiming();
      this.#trimTail();
      this.#endCues();
    } else this.events.makeCues(this.#source.receivedTicks / TICKS_PER_SECOND);
    return true;
  }

  /** Whether a gain is known; true where all audio has come. */
  get #isLevelKnown(): boolean {
    if (this.#source.isLevelKnown || this.#hasAllCome) return true;
    return this.bufferedTicks >= Math.min(LEVEL_HELD_TICKS, this.#lookaheadTicks / 2);
  }

  get #hasAllCome(): boolean {
    return this.attempt.isComplete && !this.attempt.hasChunk;
  }

  /** Its last words are still looked for in its audio, for a bounded time. */
  get #areWordsAwaited(): boolean {
    return this.#times?.isAwaited === true;
  }

  /** The surplus in one piece or not at all; only the rest of a response may be shorter. */
  #surplus({ maxTicks, surplusTicks }: Wanted, freeTicks: number): number {
    const isAll = this.#hasAllCome;
    const ahead = this.bufferedTicks - maxTicks;
    const spare = isAll ? ahead : Math.min(ahead - TIMED_AHEAD_TICKS, freeTicks - maxTicks);
    return spare >= surplusTicks ? surplusTicks : isAll ? Math.max(0, spare) : 0;
  }

  /**
   * How much can be rendered while the end may still come. The rest is held back: it has to fade out if it is the end, and the
   * leveller needs these samples to level those before them. No limit once the end has come.
   */
  get #endTicks(): number {
    if (this.#hasAllCome) return Number.POSITIVE_INFINITY;
    const fadedTicks = this.#mayFade ? this.#source.fillableTicks(FADE_TICKS) : 0;
    return this.bufferedTicks - Math.max(fadedTicks, this.#source.levelledBehindTicks);
  }

  /**
   * From the audio rendered to the end of the last word that has come whole; where no timing comes, to the last sound: the
   * silence behind it may be the end, and be trimmed.
   */
  #wholeTicks(): number {
    if (this.#hasAllCome) return Number.POSITIVE_INFINITY;
    const times = this.#times;
    if (times === null || times.timedToSeconds === 0) {
      return this.bufferedTicks - Math.min(this.#source.trailingSilenceTicks, this.#trimTicks);
    }
    const held = Math.min(MAX_HELD_TICKS, this.#aheadTicks / 4);
    // With the end of the word in hand it can still be made to fall to nothing.
    const last = this.utterance.transcript.words.at(-1);
    const lastTicks = last !== undefined && last.start >= this.attempt.segment.start ? last.endTicks : 0;
    const wholeTicks = lastTicks - FADE_TICKS - this.#writeTicks;
    return Math.max(wholeTicks, this.bufferedTicks - held);
  }

  /** End of the audio rendered, on the timeline. */
  get #writeTicks(): number {
    return this.#baseTicks + this.#renderedTicks;
  }

  // ---- a response that broke off ---------------------------------------------------------------------------------

  /** Takes all that has come; up to where it is whole, or null where that is not known or no audio came. Throws what breaks the audio. */
  findKnownEnd(): KnownEnd | null {
    this.#take(Number.POSITIVE_INFINITY);
    if (this.#source.receivedTicks === 0) return null;
    if (!this.#isStartTrimmed) this.#trimLeadingSilence();
    this.#times?.readAll();
    const timedToSeconds = this.#times?.timedToSeconds ?? 0;
    const { segment } = this.attempt;
    return knownEndOf({
      words: this.utterance.transcript.words.filter(({ start }) => start >= segment.start),
      places: this.utterance.restartPlaces,
      hasTextBehind: (spokenEnd) => remainderOf(this.utterance, segment, spokenEnd) !== null,
      writeTicks: this.#writeTicks,
      soundTicks: this.#writeTicks + this.bufferedTicks - this.#source.trailingSilenceTicks,
      receivedTicks: this.#writeTicks + this.bufferedTicks + this.#source.fillableTicks(WORD_END_TICKS),
      timedTicks: timedToSeconds === 0 ? null : this.events.ticksAt(timedToSeconds),
    });
  }

  /** All that is to be said of it is here: it ends as if it had ended well. */
  endWhole(): void {
    this.#breakState = "whole";
  }

  /** It ends here, and what is behind comes with another response. Of what was rendered already nothing is taken back. */
  endAt(end: KnownEnd): void {
    this.#breakState = "brokeOff";
    this.#isTailTrimmed = true;
    const { attempt, utterance } = this;
    const spokenEnd = end.spokenEnd ?? attempt.segment.start;
    const ticks = end.ticks ?? this.#baseTicks;
    const clientEnd = utterance.spoken.clientEnd(spokenEnd);
    const text = attempt.segment.text.slice(0, spokenEnd - attempt.segment.start);
    this.#segment = { ...attempt.segment, text, end: spokenEnd };
    this.#segment.stages.end = Math.max(this.#segment.stages.start, clientEnd);
    this.events.breakOffAt({ spokenEnd, clientEnd });
    this.#times?.breakOff();
    // Where more was rendered, a little of the audio behind it: to fall to nothing.
    const leastTicks = this.#renderedTicks > 0 ? FADE_TICKS : 0;
    const keptTicks = ticks - this.#writeTicks;
    this.#droppedTailTicks += this.#source.dropBehind(Math.max(leastTicks, keptTicks));
    this.#source.fadeOut(FADE_TICKS);
    // The emitted end of the last word stays true.
    this.#source.addSilence(ticks - this.#writeTicks - this.bufferedTicks);
    this.#behindBreakTicks = Math.max(0, this.#writeTicks + this.bufferedTicks - ticks);
    this.events.endAt(this.#renderedTicks + this.bufferedTicks);
    this.events.endCues(this.#segment, false);
  }

  /** Writes the events that belong before `writeTicks`, the end of the audio rendered. */
  emitUpTo(writeTicks: number): void {
    this.events.emitUpTo(writeTicks);
  }

  /** All audio is rendered: emits the events that are left. Throws when the audio ended inside an Ogg page. */
  finish(): void {
    if (this.attempt.error === null) this.#source.finish();
    this.#finishTiming();
    this.events.emitAll(this.#renderedTicks);
    if (
      this.#renderedTicks + this.#droppedLeadingTicks === 0 &&
      /[\p{L}\p{N}]/u.test(this.attempt.segment.text) &&
      this.attempt.error === null
    ) {
      throw new GatewayError(
        "upstream_truncated",
        "Upstream ended the speech early: it sent no audio at all",
      );
    }
  }

  /**
   * The speech is cut there: takes what has come and was not rendered, with its timing, so that it can be spoken later, and
   * emits late events of the speech that was heard. The segment is over then; the slices are good until it is closed.
   */
  takeRest(cutTicks: number): Slice[] {
    this.#take(Number.POSITIVE_INFINITY);
    this.#times?.readAll();
    if (this.isWhole) this.#finishTiming();
    else this.#times?.estimateCut(cutTicks - this.#baseTicks + this.#droppedLeadingTicks);
    this.events.emitUpTo(cutTicks);
    const slices: Slice[] = [];
    for (;;) {
      const slice = this.#source.take(TICKS_PER_SECOND);
      if (slice === undefined) return slices;
      slices.push(slice);
    }
  }

  /** What was taken is no longer good once another segment is rendered. */
  close(): void {
    this.#times?.close();
    this.#carryOver.store = this.#source.close();
  }

  #finishTiming(): void {
    if (!this.isWhole) return;
    this.#times?.finish(this.#source);
  }

  /** No times have come for what is rendered next: with all audio that may be in hand they can be estimated. */
  get isUntimed(): boolean {
    return this.#times?.isUntimed(this.#passedTicks) === true;
  }

  /** How far ahead of the audio rendered the response is taken: cues are made of all words that are there. */
  get #lookaheadTicks(): number {
    if (this.utterance.transcript.cues !== null) return this.#aheadTicks;
    return Math.min(this.#aheadTicks, Math.max(READ_AHEAD_TICKS, this.#trimTicks));
  }

  /** So much of it is taken: all, where no more comes than is there. */
  get #untimedTicks(): number {
    return this.attempt.isComplete ? Number.POSITIVE_INFINITY : this.#aheadTicks;
  }

  /** Audio of the response that is rendered or dropped before what is here. */
  get #passedTicks(): number {
    return this.#renderedTicks + this.#droppedLeadingTicks;
  }

  /** Takes from the attempt until so much is in hand. */
  #take(ticks: number): void {
    while (this.bufferedTicks < ticks || !this.#source.hasAudio) {
      const chunk = this.attempt.take();
      if (chunk === undefined) return;
      this.#source.push(chunk.audio);
      this.events.preSkipTicks = this.#source.preSkipTicks;
      this.#times?.push(chunk, this.#source.speechTicks / TICKS_PER_SECOND);
    }
  }

  /** Without trimming an upstream's audio stays as it is, but for what was cut here or goes on behind a cut. */
  get #mayFade(): boolean {
    const { segment } = this.attempt;
    const isKept = segment.start < (this.utterance.resumption?.keptEnd ?? 0);
    return this.#trimTicks > 0 || isKept || segment.isRest === true;
  }

  /** False while all that came is silent and may all have to go. */
  #trimLeadingSilence(): boolean {
    // Not more than is taken ahead, or silence would be waited for that can't come.
    const trimTicks = beginsWithBreak(this.attempt.segment.text) ? 0 : this.#trimTicks;
    const maxTicks = Math.min(trimTicks, this.#lookaheadTicks);
    const limit: SilenceLimit = { maxTicks, keepTicks: KEEP_LEADING_TICKS };
    const isAll = this.attempt.isComplete && !this.attempt.hasChunk;
    const dropped = this.#source.dropLeadingSilence(limit, isAll);
    if (dropped === null) return false;
    this.#isStartTrimmed = true;
    this.#droppedLeadingTicks = dropped;
    this.events.dropLeading(dropped);
    if (this.#mayFade) this.#source.fadeIn(FADE_TICKS);
    return true;
  }

  /** What was emitted already stays true: no character may end behind the audio. */
  #trimTail(): void {
    this.#isTailTrimmed = true;
    const emittedTicks = Math.max(0, this.utterance.transcript.emittedEndTicks - this.#writeTicks);
    const room = this.bufferedTicks - emittedTicks;
    if (room > 0) {
      this.#droppedTailTicks = this.#source.dropTrailingSilence({
        maxTicks: lastBreakTicks(this.attempt.segment.text) === null ? Math.min(this.#trimTicks, room) : 0,
        keepTicks: KEEP_TAIL_TICKS,
      });
    }
    // Kept audio that ends where the upstream's did was not cut there.
    const isUncut = this.#trimTicks === 0 && this.utterance.isExhausted;
    if (this.#mayFade && !isUncut) this.#source.fadeOut(FADE_TICKS);
    this.events.endAt(this.#renderedTicks + this.bufferedTicks);
  }

  #endCues(): void {
    const { utterance } = this;
    const hasMoreText = !utterance.input.isEnded || !isBlank(utterance.textBehind(this.#segment));
    this.events.endCues(this.#segment, !hasMoreText && !this.#isFollowed());
  }
}
