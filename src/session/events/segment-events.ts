/**
 * The events of one segment, kept until their audio is rendered: only then it is known how much silence
 * was trimmed before and behind it.
 */
import type { CharactersEvent, NormalizedEvent, SegmentEvent, WordsEvent } from "../../protocol/events.ts";
import type { EventKind, Timing } from "../../protocol/vocabulary.ts";
import type { Segment } from "../../text/segmenter.ts";
import type { VoiceSegment } from "../../timing/alignment.ts";
import { msOfTicks, TICKS_PER_SECOND } from "../../timing/ticks.ts";
import { type TimedCharacters, type TimedWord, weaker, widestBound } from "../../timing/timed.ts";
import type { StyledCue } from "../captions/cue-tracks.ts";
import type { Span } from "../playback/transcript.ts";
import type { Utterance } from "../playback/utterance.ts";
import { boundMsOf, charactersBefore, cueBuilder } from "./event-builders.ts";
import type { EventBuilder, EventWriter } from "./event-writer.ts";
import type { NormalizedCharacters } from "./normalized-times.ts";
import { VisemeEvents, type VisemeKind } from "./viseme-events.ts";

type Kind = "characters" | "normalized" | "words" | "segments" | "cues" | VisemeKind;

interface PendingEvent {
  /** Where on the timeline it belongs; no further than the audio's end. */
  readonly ticks: number;
  readonly kind: Kind;
  /** The style of a cue. */
  readonly cueStyle?: string;
  /** Called when it is emitted: by then the times are final. null: the response broke off before it. */
  readonly build: () => EventBuilder | null;
}

/** Where a response that broke off ends: what is behind comes with another one. */
interface BreakOff {
  /** Offset in the spoken text, and in the client's. */
  readonly spokenEnd: number;
  readonly clientEnd: number;
}

export interface SegmentEventsOptions {
  readonly utterance: Utterance;
  readonly writer: EventWriter;
  /** Where on the timeline the segment begins. */
  readonly baseTicks: number;
  /** Whether anybody has ever asked for this kind of event. */
  readonly wasWanted: (kind: EventKind) => boolean;
}

export class SegmentEvents {
  readonly #utterance: Utterance;
  readonly #writer: EventWriter;
  readonly #baseTicks: number;
  readonly #wasWanted: (kind: EventKind) => boolean;
  /** By place; those of one place in the order they came. */
  #pending: PendingEvent[] = [];
  /** Words that were not whole yet when cues were made last. */
  #cueWords: TimedWord[] = [];
  /** Once all its cues are made: where the text behind it begins, and how long the last one may stay. */
  cuesEnd: { readonly next: number; readonly untilSeconds: number } | null = null;
  #droppedLeadingTicks = 0;
  #endTicks = Number.POSITIVE_INFINITY;
  #breakOff: BreakOff | null = null;
  readonly #visemes: VisemeEvents;
  /** What decoders skip at the start, ticks. */
  preSkipTicks = 0;

  constructor(options: SegmentEventsOptions) {
    this.#utterance = options.utterance;
    this.#writer = options.writer;
    this.#baseTicks = options.baseTicks;
    this.#wasWanted = options.wasWanted;
    this.#visemes = new VisemeEvents({
      utterance: options.utterance,
      wants: options.wasWanted,
      ticksAt: (seconds) => this.ticksAt(seconds),
      spokenBreakOff: () => this.#breakOff?.spokenEnd ?? Number.POSITIVE_INFINITY,
      add: (kind, ticks, build) => this.#add(kind, ticks, build),
    });
  }

  /** Silence was taken off the beginning. Before any time of the segment is noted. */
  dropLeading(ticks: number): void {
    this.#droppedLeadingTicks = ticks;
  }

  /** The segment's audio ends here, ticks from its beginning. */
  endAt(ticks: number): void {
    this.#endTicks = ticks;
    const { transcript } = this.#utterance;
    transcript.endAt(this.#baseTicks + ticks);
    // Times emitted for text behind that place are void: they come again.
    if (this.#breakOff !== null) transcript.voidEmittedBehind(this.#baseTicks + ticks);
  }

  /** The response broke off: only text before this position is emitted, and noted as spoken. */
  breakOffAt(place: BreakOff): void {
    this.#breakOff = place;
    this.#utterance.transcript.voidFrom(place.spokenEnd);
    this.#cueWords = this.#cueWords.filter((word) => word.start < place.clientEnd);
  }

  emitUpTo(writeTicks: number): void {
    while (this.#pending[0] !== undefined && this.#placeOf(this.#pending[0]) < writeTicks) {
      this.#emitFirst(Number.POSITIVE_INFINITY);
    }
  }

  /** Nothing is behind the audio: an event there would wait for a frame that never comes, and all others behind it. */
  emitAll(renderedTicks: number): void {
    this.endAt(Math.min(this.#endTicks, renderedTicks));
    this.makeCues();
    this.#visemes.close(this.#baseTicks + this.#endTicks);
    while (this.#pending.length > 0) this.#emitFirst(this.#baseTicks + renderedTicks);
  }

  /** The spoken text's own times, for receipts and for going on after a cut. */
  noteSpoken(timed: TimedCharacters): void {
    const { transcript } = this.#utterance;
    let start = timed.start;
    timed.characters.forEach((character, index) => {
      const end = start + character.length;
      transcript.addCharacter({
        start,
        end,
        startTicks: this.ticksAt(timed.startSeconds[index] ?? 0),
        endTicks: this.ticksAt(timed.endSeconds[index] ?? 0),
      });
      start = end;
    });
    this.#visemes.noteCharacters(timed);
    transcript.noteTiming(timed.timing);
  }

  noteSpokenWords(words: readonly TimedWord[]): void {
    for (const word of words) {
      this.#utterance.transcript.addWord({
        start: word.start,
        end: word.end,
        startTicks: this.ticksAt(word.startSeconds),
        endTicks: this.ticksAt(word.endSeconds),
        timing: word.timing,
      });
    }
    this.#visemes.noteWords(words);
  }

  addCharacters(given: TimedCharacters): void {
    const utterance_id = this.#utterance.id;
    this.#add("characters", this.ticksAt(given.startSeconds[0] ?? 0), () => {
      const timed = charactersBefore(given, this.#clientBreakOff);
      if (timed.characters.length === 0) return null;
      const start_ms = timed.startSeconds.map((seconds) => this.#msAt(seconds));
      const end_ms = timed.endSeconds.map((seconds) => this.#emittedMsAt(seconds));
      return (base): CharactersEvent => ({
        type: "characters",
        ...base,
        utterance_id,
        start: timed.start,
        end: timed.end,
        characters: timed.characters,
        start_ms,
        end_ms,
        timing: timed.timing,
        ...boundMsOf(timed),
      });
    });
  }

  /** Few ask for it, and for each chunk it is as much as the characters. */
  get wantsNormalized(): boolean {
    return this.#wasWanted("normalized");
  }

  /** `segmentStart`: what their offsets count from. */
  addNormalized(timed: NormalizedCharacters, segmentStart: number): void {
    const utterance_id = this.#utterance.id;
    const { characters, startSeconds, endSeconds, timing } = timed;
    const starts = timed.spokenStarts.map((start) => segmentStart + start);
    const { transcript } = this.#utterance;
    characters.forEach((text, index) => {
      const span = this.#spanOf(startSeconds[index] ?? 0, endSeconds[index] ?? 0);
      transcript.addNormalized({ text, start: starts[index] ?? segmentStart, ...span });
    });
    this.#add("normalized", this.ticksAt(startSeconds[0] ?? 0), () => {
      const spokenBreakOff = this.#breakOff?.spokenEnd ?? Number.POSITIVE_INFINITY;
      const behind = starts.findIndex((start) => start >= spokenBreakOff);
      const emitted = behind < 0 ? characters : characters.slice(0, behind);
      if (emitted.length === 0) return null;
      const start_ms = startSeconds.slice(0, emitted.length).map((seconds) => this.#msAt(seconds));
      const end_ms = endSeconds.slice(0, emitted.length).map((seconds) => this.#msAt(seconds));
      return (base): NormalizedEvent => ({
        type: "normalized",
        ...base,
        utterance_id,
        characters: emitted,
        start_ms,
        end_ms,
        timing,
      });
    });
  }

  addWords(words: readonly TimedWord[]): void {
    const [first] = words;
    if (first === undefined) return;
    const utterance_id = this.#utterance.id;
    this.#cueWords.push(...words);
    const timing = words.reduce<Timing>((worst, word) => weaker(worst, word.timing), "exact");
    const bound = boundMsOf({ timing, ...widestBound(words) });
    this.#add("words", this.ticksAt(first.startSeconds), () => {
      const whole = words.filter((word) => word.start < this.#clientBreakOff);
      if (whole.length === 0) return null;
      const placed = whole.map((word) => ({
        text: word.text,
        start_ms: this.#msAt(word.startSeconds),
        end_ms: this.#emittedMsAt(word.endSeconds),
        start: word.start,
        end: word.end,
      }));
      return (base): WordsEvent => ({
        type: "words",
        ...base,
        utterance_id,
        words: placed,
        timing,
        ...bound,
      });
    });
  }

  addVoiceSegment(segment: VoiceSegment, text: { readonly start: number; readonly end: number }): void {
    const utterance_id = this.#utterance.id;
    const span = this.#spanOf(segment.start_time_seconds, segment.end_time_seconds);
    this.#utterance.transcript.addVoice({
      voiceId: segment.voice_id,
      inputIndex: segment.dialogue_input_index,
      ...text,
      ...span,
    });
    this.#add("segments", span.startTicks, () => {
      if (text.start >= this.#clientBreakOff) return null;
      const end = Math.min(text.end, this.#clientBreakOff);
      const start_ms = this.#msAt(segment.start_time_seconds);
      const end_ms = this.#msAt(segment.end_time_seconds);
      return (base): SegmentEvent => ({
        type: "segment",
        ...base,
        utterance_id,
        voice_id: segment.voice_id,
        dialogue_input_index: segment.dialogue_input_index,
        start_ms,
        end_ms,
        start: text.start,
        end,
      });
    });
  }

  /**
   * Cues of the words that end before `seconds` of the response: those behind may come with another one. Not before it
   * is known what was trimmed at the beginning.
   */
  makeCues(seconds = Number.POSITIVE_INFINITY): void {
    const { cues } = this.#utterance.transcript;
    if (this.#cueWords.length === 0) return;
    const behind = this.#cueWords.findIndex((word) => word.endSeconds > seconds);
    const ready = this.#cueWords.splice(0, behind < 0 ? this.#cueWords.length : behind);
    if (cues === null) return;
    const words = ready.map((word) => ({
      ...word,
      startSeconds: this.ticksAt(word.startSeconds) / TICKS_PER_SECOND,
      endSeconds: this.ticksAt(word.endSeconds) / TICKS_PER_SECOND,
    }));
    for (const cue of cues.push(words)) this.addCue(cue);
  }

  /** Client's offset up to which words went into the cues that were made, if there are any. */
  get cuedTo(): number {
    return this.#cueWords[0]?.start ?? Number.POSITIVE_INFINITY;
  }

  /** All words have come and the audio's end is known. Where nothing follows, the last cue may stay longer than that. */
  endCues(segment: Segment, isLast: boolean): void {
    this.makeCues();
    const endSeconds = (this.#baseTicks + this.#endTicks) / TICKS_PER_SECOND;
    const end = { next: segment.end, untilSeconds: isLast ? Number.POSITIVE_INFINITY : endSeconds };
    this.cuesEnd = end;
    for (const cue of this.#utterance.transcript.cues?.endSegment(end.next, end.untilSeconds) ?? [])
      this.addCue(cue);
  }

  addCue({ cue, style }: StyledCue): void {
    const startTicks = Math.round(cue.startSeconds * TICKS_PER_SECOND);
    const endTicks = Math.round(cue.endSeconds * TICKS_PER_SECOND);
    const build = cueBuilder(cue, this.#utterance.id);
    this.#utterance.transcript.cues?.note(style, { startTicks, endTicks }, build);
    this.#add("cues", startTicks, () => build, style);
  }

  #add(kind: Kind, ticks: number, build: PendingEvent["build"], cueStyle?: string): void {
    let index = this.#pending.length;
    while (index > 0 && (this.#pending[index - 1]?.ticks ?? 0) > ticks) index -= 1;
    const event = { ticks, kind, build };
    this.#pending.splice(index, 0, cueStyle === undefined ? event : { ...event, cueStyle });
  }

  #emitFirst(limitTicks: number): void {
    const event = this.#pending.shift();
    if (event === undefined) return;
    const build = event.build();
    if (build === null) return;
    const positionTicks = Math.min(this.#placeOf(event), limitTicks);
    const { kind, cueStyle } = event;
    const place = { positionTicks, kind, utterance: this.#utterance };
    this.#writer.write(cueStyle === undefined ? place : { ...place, cueStyle }, build);
  }

  #placeOf({ ticks }: PendingEvent): number {
    return Math.min(ticks, this.#baseTicks + this.#endTicks);
  }

  /** Client's offset from which on nothing is emitted. */
  get #clientBreakOff(): number {
    return this.#breakOff?.clientEnd ?? Number.POSITIVE_INFINITY;
  }

  /** Where on the timeline a moment of the response is. */
  ticksAt(seconds: number): number {
    const ticks = this.preSkipTicks + Math.round(seconds * TICKS_PER_SECOND) - this.#droppedLeadingTicks;
    return this.#baseTicks + Math.max(0, Math.min(ticks, this.#endTicks));
  }

  #spanOf(startSeconds: number, endSeconds: number): Span {
    const startTicks = this.ticksAt(Number.isFinite(startSeconds) ? startSeconds : 0);
    const endTicks = Number.isFinite(endSeconds) ? this.ticksAt(endSeconds) : startTicks;
    return { startTicks, endTicks: Math.max(startTicks, endTicks) };
  }

  #msAt(seconds: number): number {
    return msOfTicks(this.ticksAt(seconds));
  }

  #emittedMsAt(seconds: number): number {
    const ticks = this.ticksAt(seconds);
    this.#utterance.transcript.noteEmitted(ticks);
    return msOfTicks(ticks);
  }
}
