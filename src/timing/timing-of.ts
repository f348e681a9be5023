/** Puts the layers together: the core with the repair in front of it and the estimator behind it. */
import { AudioEstimator } from "./estimate/audio-estimator.ts";
import { RepairedTimes } from "./repair/repaired-times.ts";
import { SegmentTiming } from "./segment-timing.ts";
import { StrictTimes } from "./span-times.ts";
import type { SpeakingRate } from "./timing-estimator.ts";

export interface TimingOptions {
  /** The text as it was sent upstream. */
  readonly text: string;
  /** UTF-16 offset of that text in the client's text. */
  readonly textStart: number;
  /** How fast the voice has spoken so far, if that is known. */
  readonly speakingRate?: SpeakingRate | null;
}

/** The timing of one upstream response. */
export function timingOf({ text, textStart, speakingRate = null }: TimingOptions): SegmentTiming {
  const times = new RepairedTimes(new StrictTimes());
  return new SegmentTiming({ text, textStart, times, estimator: new AudioEstimator(speakingRate) });
}
