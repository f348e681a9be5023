/**
 * The segment that is being pushed to the listeners now: takes its upstream's chunks one by one, turns their
 * alignment into events on the session's timeline and their audio into slices, never further than it is asked to.
 */
import { GatewayError } from "../errors.ts";
import type { Timing } from "../protocol/vocabulary.ts";
import { WordScanner } from "../text/words.ts";
import { SegmentTiming } from "../timing/segment-timing.ts";
import { msOfTicks, TICKS_PER_SECOND } from "../timing/ticks.ts";
import type { TimedCharacters, TimedWord } from "../timing/timed.ts";
import { WordTracker } from "../timing/word-tracker.ts";
import type { SynthesisChunk } from "../upstream/types.ts";
import type { EventBuilder, EventPlace, EventWriter } from "./event-writer.ts";
import type { SegmentRun } from "./segment-run.ts";
import { type Slice, Source } from "./source.ts";
import type { Utterance } from "./utterance.ts";

/** Audio that an upstream's encoder may hold back when it sends the timing of what it was given: an Opus packet and more. */
const ENCODER_SECONDS = 0.03;

const TIMING_RANK: Record<Timing | "none", number> = { none: 0, exact: 1, scaled: 2, estimated: 3 };

interface PendingEvent {
  readonly place: EventPlace;
  readonly build: EventBuilder;
}

export interface SegmentFeedOptions {
  readonly run: SegmentRun;
  readonly utterance: Utterance;
  /** Where on the timeline the segment begins. */
  readonly baseTicks: number;
  readonly writer: EventWriter;
  /**
   * How far ahead of the audio pushed its timing is read, where it has come: a word is known to be whole only when its
   * last character has, and is to be told before its first frame.
   */
  readonly lookaheadTicks: number;
}

export class SegmentFeed {
  readonly run: SegmentRun;
  readonly utterance: Utterance;
  readonly #writer: EventWriter;
  readonly #source: Source;
  readonly #timing: SegmentTiming;
  readonly #words: WordTracker;
  readonly #baseTicks: number;
  readonly #lookaheadTicks: number;
  #pushedTicks = 0;
  #isTimed = false;
  /** Characters that the response has timed so far. */
  #timedCharacters = 0;
  /** Events of audio that is not pushed yet, by position. */
  #pending: PendingEvent[] = [];

  constructor(options: SegmentFeedOptions) {
    this.run = options.run;
    this.utterance = options.utterance;
    this.#baseTicks = options.baseTicks;
    this.#writer = options.writer;
    this.#lookaheadTicks = options.lookaheadTicks;
    this.#source = new Source(options.run.sourceFormat);
    const { segment } = options.run;
    // Offsets inside are the segment's own and shifted on the way out: the tracker then closes the last word of a
    // segment at its end, whatever text the client adds later.
    this.#timing = new SegmentTiming({ text: segment.text, textStart: 0 });
    this.#words = new WordTracker({
      words: new WordScanner(),
      text: segment.text,
      boundaries: options.utterance.joints,
    });
    this.#words.endText();
  }

  /** Audio taken from the upstream and not pushed yet. */
  get bufferedTicks(): number {
    return this.#source.receivedTicks - this.#pushedTicks;
  }

  /** Nothing left to push and nothing will come. */
  get isOver(): boolean {
    return this.run.isComplete && !this.run.hasChunk && !this.#source.hasAudio;
  }

  /** The next slice of at most `maxTicks`, or undefined when there is none now. Throws what breaks the audio. */
  next(maxTicks: number): Slice | undefined {
    this.#lookAhead();
    const slice = this.#source.take(maxTicks);
    if (slice === undefined) return undefined;
    this.#noteSilence(slice);
    this.#pushedTicks += slice.ticks;
    return slice;
  }

  /** Writes the events that belong before `edgeTicks`, the end of the audio pushed. */
  tellUpTo(edgeTicks: number): void {
    while (this.#pending[0] !== undefined && this.#pending[0].place.positionTicks < edgeTicks) {
      const { place, build } = this.#pending[0];
      this.#pending.shift();
      this.#writer.write(place, build);
    }
  }

  /** All audio is pushed: tells what is left to tell. Throws when the audio ended inside a sample. */
  finish(): void {
    this.#source.finish();
    if (this.#isTimed) {
      const rest = this.#timing.finish(this.#pushedTicks / TICKS_PER_SECOND);
      if (rest !== null) this.#tellCharacters(rest);
      this.#tellWords(this.#words.finish());
    }
    // Nothing is behind the audio: an event there would wait for a frame that never comes, and all others behind it.
    const endTicks = this.#baseTicks + this.#pushedTicks;
    for (const { place, build } of this.#pending) {
      this.#writer.write({ ...place, positionTicks: Math.min(place.positionTicks, endTicks) }, build);
    }
    this.#pending = [];
    if (this.#pushedTicks === 0 && /[\p{L}\p{N}]/u.test(this.run.segment.text) && this.run.error === null) {
      throw new GatewayError(
        "upstream_truncated",
        "Upstream ended the speech early: it sent no audio at all",
      );
    }
  }

  close(): void {
    this.#source.close();
  }

  #lookAhead(): void {
    while (this.bufferedTicks < this.#lookaheadTicks || !this.#source.hasAudio) {
      const chunk = this.run.take();
      if (chunk === undefined) return;
      this.#source.push(chunk.audio);
      this.#tellTiming(chunk);
    }
  }

  #tellTiming(chunk: SynthesisChunk): void {
    if (chunk.alignment === null && chunk.normalizedAlignment === null && chunk.voiceSegments.length === 0)
      return;
    this.#isTimed = true;
    this.#timedCharacters += chunk.alignment?.characters.length ?? 0;
    const timed = this.#timing.push(chunk.alignment, chunk.normalizedAlignment, {
      audioSeconds: this.#source.receivedTicks / TICKS_PER_SECOND + ENCODER_SECONDS,
    });
    for (const segment of chunk.voiceSegments) this.#tellVoiceSegment(segment);
    if (timed === null) return;
    this.#tellCharacters(timed);
    this.#tellWords(this.#words.push(timed));
  }

  /** Keeps the events in order of their positions; those of one position in the order they were found. */
  #queue(place: EventPlace, build: EventBuilder): void {
    let index = this.#pending.length;
    while (index > 0 && (this.#pending[index - 1]?.place.positionTicks ?? 0) > place.positionTicks)
      index -= 1;
    this.#pending.splice(index, 0, { place, build });
  }

  #ticksAt(seconds: number): number {
    return this.#baseTicks + this.#source.preSkipTicks + Math.round(seconds * TICKS_PER_SECOND);
  }

  #msAt(seconds: number): number {
    return msOfTicks(this.#ticksAt(seconds));
  }

  #tellCharacters(timed: TimedCharacters): void {
    const { utterance } = this;
    const shift = this.run.segment.start;
    this.#noteTiming(timed.timing);
    let end = timed.start + shift;
    timed.characters.forEach((character, index) => {
      end += character.length;
      utterance.heard.push({ end, endTicks: this.#ticksAt(timed.endSeconds[index] ?? 0) });
    });
    const startMs = timed.startSeconds.map((seconds) => this.#msAt(seconds));
    const endMs = timed.endSeconds.map((seconds) => this.#msAt(seconds));
    this.#queue(
      { positionTicks: this.#ticksAt(timed.startSeconds[0] ?? 0), kind: "characters", utterance },
      (base, offset) => ({
        type: "characters",
        ...base,
        utterance_id: utterance.id,
        start: offset(timed.start + shift),
        end: offset(timed.end + shift),
        characters: timed.characters,
        start_ms: startMs,
        end_ms: endMs,
        timing: timed.timing,
      }),
    );
  }

  #tellWords(words: readonly TimedWord[]): void {
    const [first] = words;
    if (first === undefined) return;
    const { utterance } = this;
    const shift = this.run.segment.start;
    const placed = words.map((word) => ({
      text: word.text,
      start_ms: this.#msAt(word.startSeconds),
      end_ms: this.#msAt(word.endSeconds),
      start: word.start + shift,
      end: word.end + shift,
    }));
    const timing = words.reduce<Timing>((worst, word) => worseOf(worst, word.timing), "exact");
    this.#queue(
      { positionTicks: this.#ticksAt(first.startSeconds), kind: "words", utterance },
      (base, offset) => ({
        type: "words",
        ...base,
        utterance_id: utterance.id,
        words: placed.map((word) => ({ ...word, start: offset(word.start), end: offset(word.end) })),
        timing,
      }),
    );
  }

  #offsetOf(characterIndex: number): number | undefined {
    return characterIndex <= this.#timedCharacters ? this.#timing.textOffsetOf(characterIndex) : undefined;
  }

  #tellVoiceSegment(segment: SynthesisChunk["voiceSegments"][number]): void {
    const { utterance } = this;
    // A segment may be told before its characters have come: until then it is the whole of its input.
    const { joints } = utterance;
    const startSeconds = Number.isFinite(segment.start_time_seconds)
      ? Math.max(0, segment.start_time_seconds)
      : 0;
    const inputStart = joints[segment.dialogue_input_index - 1] ?? 0;
    const inputEnd = joints[segment.dialogue_input_index] ?? this.run.segment.text.length;
    const start = Math.max(inputStart, this.#offsetOf(segment.character_start_index) ?? inputStart);
    const end = Math.min(inputEnd, this.#offsetOf(segment.character_end_index) ?? inputEnd);
    this.#queue(
      { positionTicks: this.#ticksAt(startSeconds), kind: "segments", utterance },
      (base, offset) => ({
        type: "segment",
        ...base,
        utterance_id: utterance.id,
        voice_id: segment.voice_id,
        dialogue_input_index: segment.dialogue_input_index,
        start_ms: this.#msAt(segment.start_time_seconds),
        end_ms: this.#msAt(segment.end_time_seconds),
        start: offset(start),
        end: offset(end),
      }),
    );
  }

  #noteTiming(timing: Timing): void {
    if (TIMING_RANK[timing] > TIMING_RANK[this.utterance.timing]) this.utterance.timing = timing;
  }

  /** For the waterfall: how much of the first segment is silent before the first sound. */
  #noteSilence(slice: Slice): void {
    const { utterance } = this;
    if (utterance.leadingSilenceMs !== null || slice.format.startsWith("opus") || this.run.segment.start > 0)
      return;
    const silence = this.#source.leadingSilence(slice);
    if (silence !== null)
      utterance.leadingSilenceMs = msOfTicks(this.#pushedTicks) + Math.round(silence * 1000);
  }
}

function worseOf(left: Timing, right: Timing): Timing {
  return TIMING_RANK[right] > TIMING_RANK[left] ? right : left;
}
