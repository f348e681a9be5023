/**
 * When the text of a segment is spoken, as its response says: alignment in, characters, words and voice segments out to
 * the segment's events; `SegmentEvents` places them on the timeline. It is read a little ahead of the audio that is rendered; times
 * that have not come by then are waited for, and estimated in the end.
 */
import { PauseFinder, type Silence } from "../../audio/analysis/pause-finder.ts";
import type { Clock } from "../../kit/clock.ts";
import type { Counters } from "../../metrics/counters.ts";
import { wordsOf } from "../../text/word-positions.ts";
import type { Aligner } from "../../timing/aligner.ts";
import { ClientTimes } from "../../timing/client-times.ts";
import type { ResponseTimes } from "../../timing/response-times.ts";
import { responseTimesOf } from "../../timing/response-times-of.ts";
import { TICKS_PER_MS, TICKS_PER_SECOND } from "../../timing/ticks.ts";
import { type TimedCharacters, type TimedWord, weaker } from "../../timing/timed.ts";
import { WordTracker } from "../../timing/word-tracker.ts";
import type { SynthesisChunk } from "../../upstream/types.ts";
import type { CarryOver } from "../playback/carry-over.ts";
import type { Utterance } from "../playback/utterance.ts";
import type { Source } from "../source.ts";
import type { Attempt } from "../synthesis/attempt.ts";
import { NormalizedTimes } from "./normalized-times.ts";
import type { SegmentEvents } from "./segment-events.ts";
import { WordSearch } from "./word-search.ts";

interface ChunkTiming extends Omit<SynthesisChunk, "audio"> {
  readonly audioSeconds: number;
  /** undefined: not known. */
  readonly pauses: readonly Silence[] | undefined;
}

/** So much of a response that is not complete stays in hand: the end of a word is known only when it has come. */
export const TIMED_AHEAD_TICKS = 250 * TICKS_PER_MS;

/**
 * How far ahead of the audio rendered the response is taken, and its timing read: a slice with its surplus, and the rest of
 * a long word, which is known to be whole only when its last character has come, and has to leave before its first frame.
 * What is behind waits in the attempt, where it takes no more room than it needs.
 */
export const READ_AHEAD_TICKS = 1500 * TICKS_PER_MS;

/** Times of so much audio are waited for: an upstream may send them behind it. */
const AWAITED_TICKS = 4000 * TICKS_PER_MS;
/** Once none came, times of so much more audio are waited for. */
const AWAITED_AGAIN_TICKS = 3000 * TICKS_PER_MS;
/** At most this share of the audio that may be in hand is waited for, or the wait would never end. */
const AWAITED_SHARE = 0.8;
/** Then times are estimated so far ahead of the rendered audio. */
const ESTIMATED_AHEAD_TICKS = 1000 * TICKS_PER_MS;

export interface SegmentTimesOptions {
  readonly attempt: Attempt;
  readonly utterance: Utterance;
  readonly events: SegmentEvents;
  readonly carryOver: CarryOver;
  /** Most audio in hand, ticks. */
  readonly aheadTicks: number;
  readonly aligner: Aligner;
  readonly clock: Clock;
  readonly counters: Counters;
  /** Times have come that no chunk has brought, or are waited for no longer. */
  readonly onTimes: () => void;
}

export class SegmentTimes {
  readonly #attempt: Attempt;
  readonly #utterance: Utterance;
  readonly #events: SegmentEvents;
  readonly #carryOver: CarryOver;
  readonly #counters: Counters;
  readonly #aheadTicks: number;
  readonly #pauseFinder: PauseFinder;
  readonly #search: WordSearch;
  readonly #times: ResponseTimes;
  readonly #words: WordTracker;
  readonly #clientTimes: ClientTimes;
  /** null until somebody asks. */
  #normalized: NormalizedTimes | null = null;
  /** Timing that came and was not read: as arrays of numbers it takes the least memory. */
  #unread: ChunkTiming[] = [];
  #isFinished = false;
  /** Times were waited for in vain, here or in a response of the voice before, or its service says that it has none. */
  #expectsNoTimes = false;
  /** Any chunk had some. */
  #hasTimes = false;
  /** Characters that the response has timed so far. */
  #timedCharacters = 0;
  /** With those of normalized alignments that came alone. */
  #readCharacters = 0;

  constructor(options: SegmentTimesOptions) {
    const { attempt, utterance, events, carryOver, aheadTicks } = options;
    this.#attempt = attempt;
    this.#utterance = utterance;
    this.#events = events;
    this.#carryOver = carryOver;
    this.#counters = options.counters;
    this.#aheadTicks = aheadTicks;
    const { segment } = attempt;
    // Offsets inside are the segment's own and shifted on the way out: its last word closes at its end, whatever text the
    // client adds later.
    this.#pauseFinder = new PauseFinder(attempt.sourceFormat);
    this.#times = responseTimesOf({
      text: segment.text,
      speakingRate: carryOver.rateOf(utterance.voiceIds),
      isSteady: attempt.hasSteadyTimes ?? false,
    });
    this.#expectsNoTimes = attempt.hasNoTimes === true || carryOver.isUntimed(utterance.voiceIds);
    this.#search = new WordSearch({
      ...options,
      request: { text: segment.text, language: utterance.languageCode, format: attempt.sourceFormat },
      isNeeded: this.#expectsNoTimes,
      onFound: (words) => this.#times.find(words),
      onUnlike: () => this.#times.dropFound(),
    });
    const joints = utterance.joints.map((at) => at - segment.start);
    this.#words = new WordTracker(wordsOf(segment.text, { joints, hasDirections: utterance.isExpressive }));
    this.#clientTimes = new ClientTimes(utterance.spoken, segment.start);
  }

  /** Takes what a chunk says of its timing. `audioSeconds`: length of all audio of the response with the chunk's. */
  push(chunk: SynthesisChunk, audioSeconds: number): void {
    const { audio, alignment, normalizedAlignment, voiceSegments } = chunk;
    // Such a chunk has nothing but its sound; an alignment without characters counts as none.
    const isMute = !alignment?.characters.length && !normalizedAlignment?.characters.length;
    const pauses = isMute && this.#pauseFinder.canHear ? this.#pauseFinder.push(audio) : undefined;
    if (pauses !== undefined) this.#search.push(audio, audioSeconds * TICKS_PER_SECOND);
    if (!isMute) {
      this.#hasTimes = true;
      this.#pauseFinder.skip(audio);
      this.#search.close();
    }
    this.#unread.push({ alignment, normalizedAlignment, voiceSegments, audioSeconds, pauses });
  }

  /**
   * Reads what has come, as far as it is to be known now: cues are made of all words that are there. `passedTicks`, here and
   * below: of the response's audio, what is rendered, with what was dropped before it.
   */
  readAhead(passedTicks: number): void {
    const hasCues = this.#utterance.transcript.cues !== null;
    this.#readUpTo(hasCues ? Number.POSITIVE_INFINITY : (passedTicks + READ_AHEAD_TICKS) / TICKS_PER_SECOND);
  }

  /** Reads all that has come. */
  readAll(): void {
    this.#readUpTo(Number.POSITIVE_INFINITY);
  }

  /** No times have come for what is rendered next: they may be behind, or there are none. */
  isUntimed(passedTicks: number): boolean {
    return this.#times.timedToSeconds * TICKS_PER_SECOND < passedTicks + TIMED_AHEAD_TICKS;
  }

  /** Has times estimated that have not come with all audio up to `takenTicks`, if that is enough. */
  estimate(passedTicks: number, takenTicks: number): void {
    if (this.#expectsNoTimes) this.#takeFound();
    if (!this.isUntimed(passedTicks) || this.#search.isAwaited) return;
    const untimedTicks = takenTicks - this.#times.timedToSeconds * TICKS_PER_SECOND;
    const awaitedTicks = this.#expectsNoTimes ? AWAITED_AGAIN_TICKS : AWAITED_TICKS;
    if (untimedTicks < Math.min(awaitedTicks, this.#aheadTicks * AWAITED_SHARE)) return;
    this.#expectsNoTimes = true;
    if (this.#takeFound() || this.#search.isBusy) return;
    const neededSeconds = (passedTicks + ESTIMATED_AHEAD_TICKS) / TICKS_PER_SECOND;
    this.#handOn(this.#times.estimateUpTo({ neededSeconds }), { isLast: false });
  }

  /** It is cut there: times of what was heard have to be emitted now, be they estimated. */
  estimateCut(ticks: number): void {
    this.#takeFound();
    if (!this.isUntimed(ticks)) return;
    const neededSeconds = (ticks + TIMED_AHEAD_TICKS) / TICKS_PER_SECOND;
    this.#handOn(this.#times.estimateUpTo({ neededSeconds, isLast: true }), { isLast: false });
  }

  /** End of the times read so far, seconds of the response; 0 where none has come. */
  get timedToSeconds(): number {
    return this.#times.timedToSeconds;
  }

  /** All of its audio is there, but some of its words are still looked for. */
  get isAwaited(): boolean {
    return this.#search.isAwaited;
  }

  /** Listeners need what follows: the words are waited for no longer than a thread that is awake takes. */
  hurry(): void {
    this.#search.hurry();
  }

  /** All of its audio is there. Idempotent. */
  endAudio(): void {
    this.#search.end();
  }

  /** Idempotent. */
  close(): void {
    this.#search.close();
  }

  /** The response broke off and is spoken up to where the events end: no more of it is timed. */
  breakOff(): void {
    this.#isFinished = true;
    const characters = this.#clientTimes.characters(null, true);
    if (characters !== null) this.#events.addCharacters(characters);
    this.#events.addWords(this.#clientTimes.words([], true));
  }

  /** Everything has come: what has no time yet gets one, if it is an estimate. Idempotent. */
  finish({ speechTicks, soundTicks }: Pick<Source, "speechTicks" | "soundTicks">): void {
    if (this.#isFinished) return;
    this.#isFinished = true;
    this.#search.close();
    this.readAll();
    const [audioSeconds, soundSeconds] = [speechTicks / TICKS_PER_SECOND, soundTicks / TICKS_PER_SECOND];
    this.#handOn(this.#times.finish(audioSeconds, soundSeconds), { isLast: true });
    const { voiceIds } = this.#utterance;
    const { speakingRate } = this.#times;
    if (speechTicks > 0) this.#carryOver.noteTimes(voiceIds, this.#hasTimes);
    if (speechTicks > 0 && !this.#hasTimes)
      this.#counters[this.#search.isComplete ? "timesFound" : "timesGuessed"] += 1;
    if (speakingRate !== null) this.#carryOver.noteRate(voiceIds, speakingRate);
  }

  /** Reads on until it is known what is spoken up to `seconds` of the response, as far as that has come. */
  #readUpTo(seconds: number): void {
    let count = 0;
    for (const timing of this.#unread) {
      if (this.#times.timedToSeconds >= seconds) break;
      this.#read(timing);
      count += 1;
    }
    if (count > 0) this.#unread = this.#unread.slice(count);
  }

  #read({ alignment, normalizedAlignment, voiceSegments, audioSeconds, pauses }: ChunkTiming): void {
    this.#timedCharacters += alignment?.characters.length ?? 0;
    const timed = this.#times.push(alignment, normalizedAlignment, { audioSeconds, pauses });
    for (const segment of voiceSegments) this.#emitVoiceSegment(segment);
    const spoken = alignment?.characters.length ? alignment : normalizedAlignment;
    if (normalizedAlignment !== null && spoken !== null && this.#events.wantsNormalized) {
      const { text } = this.#attempt.segment;
      this.#normalized ??= new NormalizedTimes(text, (index) => this.#times.textOffsetOf(index));
      this.#normalized.push(normalizedAlignment, spoken, this.#readCharacters);
    }
    this.#readCharacters += spoken?.characters.length ?? 0;
    this.#handOn(timed, { isLast: false });
  }

  /** Whether there was any. */
  #takeFound(): boolean {
    const found = this.#times.takeFound();
    this.#handOn(found, { isLast: false });
    return found !== null;
  }

  #handOn(given: TimedCharacters | null, { isLast }: { readonly isLast: boolean }): void {
    if (given === null && !isLast) return;
    const { segment, timing } = this.#attempt;
    // What was kept at a cut is known no better than it was then.
    const timed =
      given === null || timing === "exact" ? given : { ...given, timing: weaker(given.timing, timing) };
    const normalized = this.#normalized?.settle(timed, isLast) ?? null;
    if (normalized !== null) this.#events.addNormalized(normalized, segment.start);
    const spoken = timed === null ? null : shifted(timed, segment.start);
    if (spoken !== null) this.#events.noteSpoken(spoken);
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
      characterIndex <= this.#timedCharacters ? this.#times.textOffsetOf(characterIndex) : undefined;
    return offset === undefined ? undefined : offset + this.#attempt.segment.start;
  }

  #emitVoiceSegment(segment: SynthesisChunk["voiceSegments"][number]): void {
    // A segment may come before its characters: until then it is all of its input.
    const { joints } = this.#utterance;
    const asked = this.#attempt.segment;
    // The upstream counts the inputs that it was asked for: a dialogue that goes on has lost its first ones.
    const dialogue_input_index = segment.dialogue_input_index + this.#utterance.inputsBefore(asked.start);
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
