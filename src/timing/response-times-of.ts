/** Puts the layers together: the core with the repair in front of it and the estimator behind it. */
import { AudioEstimator } from "./estimate/audio-estimator.ts";
import { RepairedTimes } from "./repair/repaired-times.ts";
import { ResponseTimes } from "./response-times.ts";
import { StrictTimes } from "./span-times.ts";
import type { SpeakingRate } from "./timing-estimator.ts";

export interface TimingOptions {
  /** The text as it was sent upstream. */
  readonly text: string;
  /** How fast the voice has spoken so far, if that is known. */
  readonly speakingRate?: SpeakingRate | null;
  /** Times count from the start of the response at the rate of its audio: they are not repaired. Default false. */
  readonly isSteady?: boolean;
}

/** The timing of one upstream response. */
export function responseTimesOf({
  text,
  speakingRate = null,
  isSteady = false,
}: TimingOptions): ResponseTimes {
  const strict = new StrictTimes();
  const times = isSteady ? strict : new RepairedTimes(strict);
  return new ResponseTimes({ text, times, estimator: new AudioEstimator(speakingRate) });
}
