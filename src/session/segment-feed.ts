/**
 * The segment that is being pushed to the listeners now: takes its run's chunks one by one, trims the silence at both
 * ends, and turns audio into slices and alignment into events on the session's timeline, never further than it is
 * asked to.
 */
import { GatewayError } from "../errors.ts";
import { isBlank } from "../text/characters.ts";
import { WordScanner } from "../text/words.ts";
import { ClientTimes } from "../timing/client-times.ts";
import { SegmentTiming } from "../timing/segment-timing.ts";
import { TICKS_PER_SECOND } from "../timing/ticks.ts";
import type { TimedCharacters, TimedWord } from "../timing/timed.ts";
import { WordTracker } from "../timing/word-tracker.ts";
import type { SynthesisChunk } from "../upstream/types.ts";
import type { EventWriter } from "./event-writer.ts";
import { FeedEvents } from "./feed-events.ts";
import { TICKS_PER_MS } from "./playhead.ts";
import type { Run } from "./segment-run.ts";
import { type SilenceLimit, type Slice, Source } from "./source.ts";
import type { Utterance } from "./utterance.ts";

/** Silence left before the first sound and behind the last: consonants begin and end below the level of silence. */
const KEEP_LEAD_TICKS = 20 * TICKS_PER_MS;
const KEEP_TAIL_TICKS = 60 * TICKS_PER_MS;
/** Where a sound meets another without silence between, it rises and falls in this. */
const FADE_TICKS = 3 * TICKS_PER_MS;

export interface SegmentFeedOptions {
  readonly run: Run;
  readonly utterance: Utterance;
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
  /** Whether another utterance waits for the end of this one. */
  readonly isFollowed: () => boolean;
}

export class SegmentFeed {
  readonly run: Run;
  readonly utterance: Utterance;
  readonly #source: Source;
  readonly #timing: SegmentTiming;
  readonly #words: WordTracker;
  readonly #clientTimes: ClientTimes;
  readonly #events: FeedEvents;
  readonly #lookaheadTicks: number;
  readonly #trimTicks: number;
  readonly #isFollowed: () => boolean;
  #pushedTicks = 0;
  #droppedLeadTicks = 0;
  #droppedTailTicks = 0;
  #isLeadTrimmed = false;
  #isTailTrimmed = false;
  #isTimingFinished = false;
  /** Characters that the response has timed so far. */
  #timedCharacters = 0;

  constructor(options: SegmentFeedOptions) {
    const { run, utterance } = options;
    this.run = run;
    this.utterance = utterance;
    this.#lookaheadTicks = options.lookaheadTicks;
    this.#trimTicks = options.trimTicks;
    this.#isFollowed = options.isFollowed;
    this.#source = new Source(run.sourceFormat);
    const { segment } = run;
    // Offsets inside are the segment's own and shifted on the way out: the tracker then closes the last word of a
    // segment at its end, whatever text the client adds later.
    this.#timing = new SegmentTiming({ text: segment.text, textStart: 0 });
    this.#words = new WordTracker({
      words: new WordScanner(),
      text: segment.text,
      boundaries: utterance.joints.map((at) => at - segment.start).filter((at) => at > 0),
    });
    this.#words.endText();
    const { spoken } = utterance;
    this.#clientTimes = new ClientTimes(spoken, segment.start);
    this.#events = new FeedEvents({ utterance, writer: options.writer, baseTicks: options.baseTicks });
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

  /** The next slice of at most `maxTicks`, or undefined when there is none now. Throws what breaks the audio. */
  next(maxTicks: number): Slice | undefined {
    this.#lookAhead(this.#lookaheadTicks);
    if (!this.#isLeadTrimmed && !this.#trimLead()) return undefined;
    if (!this.#isTailTrimmed && this.run.isComplete && !this.run.hasChunk) {
      this.#finishTiming();
      this.#trimTail();
      this.#endCues();
    } else this.#events.makeCues();
    const slice = this.#source.take(maxTicks);
    if (slice !== undefined) this.#pushedTicks += slice.ticks;
    return slice;
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
   * The feed is over then.
   */
  takeRest(): Slice[] {
    this.#lookAhead(Number.POSITIVE_INFINITY);
    if (this.run.isComplete) this.#finishTiming();
    const slices: Slice[] = [];
    for (;;) {
      const slice = this.#source.take(TICKS_PER_SECOND);
      if (slice === undefined) return slices;
      slices.push(slice);
    }
  }

  close(): void {
    this.#source.close();
  }

  /** Everything has come: what has no time yet gets one, if it is an estimate. */
  #finishTiming(): void {
    if (this.#isTimingFinished || this.run.error !== null || !this.run.wantsTiming) return;
    this.#isTimingFinished = true;
    const endSeconds = this.#source.receivedTicks / TICKS_PER_SECOND;
    this.#tell(this.#timing.finish(endSeconds), { isLast: true });
  }

  #lookAhead(ticks: number): void {
    while (this.bufferedTicks < ticks || !this.#source.hasAudio) {
      const chunk = this.run.take();
      if (chunk === undefined) return;
      this.#source.push(chunk.audio);
      this.#events.preSkipTicks = this.#source.preSkipTicks;
      this.#tellTiming(chunk);
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

  #tellTiming(chunk: SynthesisChunk): void {
    this.#timedCharacters += chunk.alignment?.characters.length ?? 0;
    const timed = this.#timing.push(chunk.alignment, chunk.normalizedAlignment, {
      audioSeconds: this.#source.receivedTicks / TICKS_PER_SECOND,
    });
    for (const segment of chunk.voiceSegments) this.#tellVoiceSegment(segment);
    if (chunk.normalizedAlignment !== null) this.#events.addNormalized(chunk.normalizedAlignment);
    this.#tell(timed, { isLast: false });
  }

  #tell(timed: TimedCharacters | null, { isLast }: { readonly isLast: boolean }): void {
    if (timed === null && !isLast) return;
    const { segment } = this.run;
    const spoken = timed === null ? null : shifted(timed, segment.start);
    if (spoken !== null) this.#events.noteSpoken(spoken, this.run.timing);
    const characters = this.#clientTimes.characters(spoken, isLast);
    if (characters !== null) this.#events.addCharacters(characters);
    const words = timed === null ? [] : this.#words.push(timed);
    if (isLast) words.push(...this.#words.finish());
    const spokenWords = words.map((word) => shiftedWord(word, segment.start));
    this.#events.noteSpokenWords(spokenWords);
    this.#events.addWords(this.#clientTimes.words(spokenWords, isLast));
  }

  #offsetOf(characterIndex: number): number | undefined {
    const offset =
      characterIndex <= this.#timedCharacters ? this.#timing.textOffsetOf(characterIndex) : undefined;
    return offset === undefined ? undefined : offset + this.run.segment.start;
  }

  #tellVoiceSegment(segment: SynthesisChunk["voiceSegments"][number]): void {
    // A segment may be told before its characters have come: until then it is the whole of its input.
    const { joints } = this.utterance;
    const asked = this.run.segment;
    // The upstream counts the inputs that it was asked for: a dialogue that goes on has lost its first ones.
    const spoken = asked.start === 0 ? 0 : joints.filter((at) => at <= asked.start).length;
    const dialogue_input_index = segment.dialogue_input_index + spoken;
    const inputStart = Math.max(asked.start, joints[dialogue_input_index - 1] ?? 0);
    const inputEnd = joints[dialogue_input_index] ?? asked.end;
    const start = Math.max(inputStart, this.#offsetOf(segment.character_start_index) ?? inputStart);
    const end = Math.min(inputEnd, this.#offsetOf(segment.character_end_index) ?? inputEnd);
    this.#events.addVoiceSegment({ ...segment, dialogue_input_index }, { start, end });
  }
}

function shifted(timed: TimedCharacters, by: number): TimedCharacters {
  return by === 0 ? timed : { ...timed, start: timed.start + by, end: timed.end + by };
}

function shiftedWord(word: TimedWord, by: number): TimedWord {
  return by === 0 ? word : { ...word, start: word.start + by, end: word.end + by };
}
