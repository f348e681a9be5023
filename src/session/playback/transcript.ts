/**
 * What the timeline learns of an utterance while it is spoken: when its characters and words are, where its segments stand.
 * Times are added at the end. None is behind the end of its segment's audio, once that is known; those long heard are
 * forgotten, and those of a response that broke off are void from a place in the text on. A new one begins with each rewind
 * and resume: what must outlive them belongs in `Utterance`.
 */
import type { Timing } from "../../protocol/vocabulary.ts";
import { weaker } from "../../timing/timed.ts";
import type { CueTracks } from "../captions/cue-tracks.ts";
import type { SegmentSpan } from "../heard-share.ts";

/** A span of the timeline. */
export interface Span {
  startTicks: number;
  endTicks: number;
}

/** Where a span of the spoken text stands on the timeline. */
export interface SpokenTime extends Span {
  /** Offsets into the spoken text. */
  readonly start: number;
  readonly end: number;
}

export interface SpokenWord extends SpokenTime {
  /** How its times are known. */
  readonly timing: Timing;
}

/** A character after the upstream's normalization. */
export interface NormalizedTime extends Span {
  /** Offset in the spoken text of the character in which it is spoken. */
  readonly start: number;
  readonly text: string;
}

/** Where one voice of a dialogue speaks. */
export interface VoiceSpan extends Span {
  readonly voiceId: string;
  /** Which of the dialogue's inputs it is in. */
  readonly inputIndex: number;
  /** Offsets into the spoken text. */
  readonly start: number;
  end: number;
}

/** null: its end is not known, or has not come. */
interface KnownEndTicks {
  readonly endTicks: number | null;
}

/** So many characters are forgotten at a time, and a quarter as many of all else: each time the rest is copied. */
const HEARD_TOGETHER = 32;
/** So much of each kind is kept for a listener that says that it is further behind: minutes of speech. */
const MAX_HEARD = 4096;

export class Transcript {
  #characters: SpokenTime[] = [];
  #words: SpokenWord[] = [];
  #segments: SegmentSpan[] = [];
  #normalized: NormalizedTime[] = [];
  #voices: VoiceSpan[] = [];
  #cues: CueTracks | null = null;
  #timing: Timing | "none";
  #emittedEndTicks = 0;

  /** `timing`: how what was heard before is known. */
  constructor(timing: Timing | "none" = "none") {
    this.#timing = timing;
  }

  /** Characters and words of the speech that is being heard, rising. */
  get characters(): readonly SpokenTime[] {
    return this.#characters;
  }
  get words(): readonly SpokenWord[] {
    return this.#words;
  }
  /** Segments whose audio was rendered, or is; rising. */
  get segments(): readonly SegmentSpan[] {
    return this.#segments;
  }
  /** Normalized times of what is being heard, as far as somebody wants them; in the order of time. */
  get normalized(): readonly NormalizedTime[] {
    return this.#normalized;
  }
  get voices(): readonly VoiceSpan[] {
    return this.#voices;
  }
  /** null until somebody asks for captions. */
  get cues(): CueTracks | null {
    return this.#cues;
  }
  /** The weakest of all its times. */
  get timing(): Timing | "none" {
    return this.#timing;
  }
  /** Behind the last time that was emitted of it. */
  get emittedEndTicks(): number {
    return this.#emittedEndTicks;
  }

  addCharacter(time: SpokenTime): void {
    this.#characters.push(time);
  }
  addWord(word: SpokenWord): void {
    this.#words.push(word);
  }
  addNormalized(time: NormalizedTime): void {
    this.#normalized.push(time);
  }
  addVoice(voice: VoiceSpan): void {
    this.#voices.push(voice);
  }
  noteTiming(timing: Timing): void {
    this.#timing = this.#timing === "none" ? timing : weaker(this.#timing, timing);
  }
  noteEmitted(endTicks: number): void {
    this.#emittedEndTicks = Math.max(this.#emittedEndTicks, endTicks);
  }

  /** The captions, made where there are none yet. */
  withCues(make: () => CueTracks): CueTracks {
    this.#cues ??= make();
    return this.#cues;
  }

  /** A segment begins: offsets in the spoken text. */
  beginSegment(text: { readonly start: number; readonly end: number }, startTicks: number): void {
    this.#segments.push({ start: text.start, end: text.end, startTicks, endTicks: null });
  }

  /** The last segment has ended there; `end`: how much of its text was spoken. */
  endSegment(end: number, endTicks: number): void {
    const last = this.#segments.at(-1);
    if (last === undefined) return;
    last.end = end;
    last.endTicks = endTicks;
  }

  /** The audio of the last segment ends there: no time is behind it. */
  endAt(endTicks: number): void {
    for (const spans of [this.#characters, this.#words, this.#normalized, this.#voices]) {
      for (const span of spans) {
        span.startTicks = Math.min(endTicks, span.startTicks);
        span.endTicks = Math.min(endTicks, span.endTicks);
      }
    }
  }

  /** A response broke off: what was learned of the text from `spokenEnd` on comes again. */
  voidFrom(spokenEnd: number): void {
    const isBefore = ({ start }: { readonly start: number }): boolean => start < spokenEnd;
    this.#characters = this.#characters.filter(isBefore);
    this.#words = this.#words.filter(isBefore);
    this.#normalized = this.#normalized.filter(isBefore);
    this.#voices = this.#voices.filter(isBefore);
    for (const voice of this.#voices) voice.end = Math.min(voice.end, spokenEnd);
  }

  /** So is what was emitted behind these ticks. */
  voidEmittedBehind(ticks: number): void {
    this.#emittedEndTicks = Math.min(this.#emittedEndTicks, ticks);
  }

  /**
   * Forgets what a listener without delay has heard before `ticks`, and the one furthest behind before `heardTicks()`, but
   * for what a cut there needs. Asked only when there is much to forget: that looks at every listener.
   */
  forgetBefore(ticks: number, heardTicks: () => number): void {
    const few = HEARD_TOGETHER / 4;
    const hasMuch =
      isHeard(this.#characters[HEARD_TOGETHER], ticks) ||
      isHeard(this.#normalized[HEARD_TOGETHER], ticks) ||
      isHeard(this.#words[few], ticks) ||
      isHeard(this.#segments[few], ticks) ||
      isHeard(this.#voices[few], ticks);
    if (!hasMuch) return;
    const beforeTicks = Math.min(ticks, heardTicks());
    this.#characters = unheard(this.#characters, beforeTicks);
    this.#words = unheard(this.#words, beforeTicks);
    this.#segments = unheard(this.#segments, beforeTicks);
    this.#normalized = unheard(this.#normalized, beforeTicks);
    this.#voices = unheard(this.#voices, beforeTicks);
  }
}

function isHeard(span: KnownEndTicks | undefined, ticks: number): boolean {
  return (span?.endTicks ?? Number.POSITIVE_INFINITY) < ticks;
}

/** Without what was heard before `ticks`, but for the last of that. `spans`: rising. */
function unheard<T extends KnownEndTicks>(spans: T[], ticks: number): T[] {
  const next = spans.findIndex((span) => !isHeard(span, ticks));
  const from = Math.max((next < 0 ? spans.length : next) - 1, spans.length - MAX_HEARD);
  return from > 0 ? spans.slice(from) : spans;
}
