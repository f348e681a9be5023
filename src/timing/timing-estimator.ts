/** What makes times for text that the upstream gave none, or none that can be believed. All of them are `estimated`. */
import type { Silence } from "../audio/analysis/pause-finder.ts";
import type { FoundWord } from "./aligner.ts";
import type { AudioSpan, TextPart } from "./spans.ts";

/** How fast a voice speaks. */
export interface SpeakingRate {
  /** Weight of the letters (estimate/speech-weight.ts) in a second of sound. */
  readonly weightASecond: number;
  /** How far off its logarithm may be. */
  readonly spread: number;
}

/** A text that is spoken in some audio. */
export interface SpokenClock {
  /** How far off its times may be, seconds: hardly more than one word in a hundred is further. */
  readonly boundSeconds: number;
  /** When the text has come to an offset (UTF-16), seconds of the response; rising. */
  secondsAt(offset: number): number;
}

export interface Needed {
  readonly neededSeconds: number;
  /** No more audio comes. Default: it does. */
  readonly isLast?: boolean;
}

export interface OpenEstimate {
  /** So much of the text has times: offset in the part, UTF-16. */
  readonly end: number;
  readonly clock: SpokenClock;
}

/** Estimates the times of one response. */
export interface TimingEstimator {
  /** Pauses in a chunk without times, behind all before it; undefined: they are not known. */
  hear(pauses: readonly Silence[] | undefined): void;
  /** Words that were found in the audio: in the order of the text, offsets into all of it. */
  find(words: readonly FoundWord[]): void;
  /** The audio does not say the text: what was found in it is no better than a guess. */
  dropFound(): void;
  /** Nobody asks for anything before that any more. */
  forgetBefore(seconds: number): void;
  /** Seconds of pauses in some audio. */
  silentSeconds(span: AudioSpan): number;
  /** The text is spoken from the beginning of this audio to its end. */
  within(text: TextPart, span: AudioSpan): SpokenClock;
  /** The text goes on behind this audio: as much of it as was found; null: none. */
  found(text: TextPart, span: AudioSpan): OpenEstimate | null;
  /** The text goes on behind this audio: as much of it as is needed and can be estimated; null: none. */
  open(text: TextPart, span: AudioSpan, needed: Needed): OpenEstimate | null;
  /** Known from text without times; null: not known. */
  readonly speakingRate: SpeakingRate | null;
}
