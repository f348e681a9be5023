/** What makes times for text that the upstream gave none, or none that can be believed. All of them are `estimated`. */
import type { Silence } from "../audio/analysis/pause-finder.ts";
import type { SoundFrames } from "../audio/analysis/sound-meter.ts";
import type { AudioSpan } from "./spans.ts";

/** How fast a voice speaks. */
export interface SpeakingRate {
  /** Of letters (estimate/speech-weight.ts), for a second of sound. */
  readonly weightASecond: number;
  /** How far off it may be: of its logarithm. */
  readonly spread: number;
}

/** A text that is spoken in some audio. */
export interface SpokenClock {
  /** When the text has come to an offset (UTF-16), seconds of the response; rising. */
  secondsAt(offset: number): number;
}

export interface Needed {
  readonly neededSeconds: number;
  /** No more audio comes. Default: it does. */
  readonly isLast?: boolean;
}

export interface OpenEstimate {
  /** So much of the text has times: offset, UTF-16. */
  readonly end: number;
  readonly clock: SpokenClock;
}

/** Of one response. */
export interface TimingEstimator {
  /** What is heard of a chunk without times, behind all before it. */
  hear(pauses: readonly Silence[] | undefined, features: SoundFrames | null | undefined): void;
  /** Nobody asks for anything before that any more. */
  forgetBefore(seconds: number): void;
  /** Seconds of pauses in some audio. */
  silentSeconds(span: AudioSpan): number;
  /** `text` is spoken from the beginning of this audio to its end. */
  within(text: string, span: AudioSpan): SpokenClock;
  /** `text` goes on behind this audio: as much of it as is needed and can be estimated; null: none. */
  open(text: string, span: AudioSpan, needed: Needed): OpenEstimate | null;
  /** Known from text without times; null: not known. */
  readonly speakingRate: SpeakingRate | null;
}
