/** Times by what is heard: pauses and features of the audio that came without times, and how fast its voice speaks. */
import type { Silence } from "../../audio/analysis/pause-finder.ts";
import type { SoundFrames } from "../../audio/analysis/sound-meter.ts";
import type { AudioSpan } from "../spans.ts";
import type {
  Needed,
  OpenEstimate,
  SpeakingRate,
  SpokenClock,
  TimingEstimator,
} from "../timing-estimator.ts";
import { AlignedText } from "./aligned-text.ts";
import { FeatureFrames } from "./feature-track.ts";
import { estimateOpen, type OpenSpeech, USUAL_RATE } from "./open-text.ts";
import { Pauses, soundClock } from "./pauses.ts";
import { letterWeights, punctuationOf } from "./punctuation.ts";
import { MIN_RATE_SECONDS } from "./speech-weight.ts";

/** More than this is not looked at: work grows with it. */
const MAX_OPEN_SECONDS = 20;
/** How far a voice that was heard may speak on at another rate; and how much more after so much sound. */
const KNOWN_SPREAD = 0.07;
const SPREAD_SECONDS = 0.1;

export class AudioEstimator implements TimingEstimator {
  readonly #pauses = new Pauses();
  readonly #frames = new FeatureFrames();
  readonly #priorRate: SpeakingRate;
  /** Of text without times that was found in its audio: the weight of its letters, and its sound. */
  readonly #found = { weight: 0, seconds: 0 };

  /** `speakingRate`: of the voice so far, if that is known. */
  constructor(speakingRate: SpeakingRate | null) {
    this.#priorRate = speakingRate ?? USUAL_RATE;
  }

  hear(pauses: readonly Silence[] | undefined, features: SoundFrames | null | undefined): void {
    if (pauses !== undefined) this.#pauses.add(pauses);
    if (features) this.#frames.add(features);
  }

  forgetBefore(seconds: number): void {
    this.#pauses.forgetBefore(seconds);
    this.#frames.forgetBefore(seconds);
  }

  silentSeconds(span: AudioSpan): number {
    return this.#pauses.within(span).reduce((sum, pause) => sum + pause.endSeconds - pause.startSeconds, 0);
  }

  within(text: string, span: AudioSpan): SpokenClock {
    const features = this.#frames.within(span);
    if (features !== null) this.#learnRate(text, span);
    return new AlignedText(text, { ...span, pauses: this.#pauses.within(span), features });
  }

  open(text: string, span: AudioSpan, needed: Needed): OpenEstimate | null {
    const speech = this.#speechIn(span);
    const estimate = speech === null ? null : estimateOpen(text, speech, needed);
    if (estimate === null) return null;
    const { end, clock } = estimate;
    this.#learnRate(text.slice(0, end), { ...span, endSeconds: clock.secondsAt(end) });
    return estimate;
  }

  get speakingRate(): SpeakingRate | null {
    const { weight, seconds } = this.#found;
    if (seconds < MIN_RATE_SECONDS || weight === 0) return null;
    return { weightASecond: weight / seconds, spread: KNOWN_SPREAD + SPREAD_SECONDS / seconds };
  }

  /** null: nothing is known of its sound. */
  #speechIn({ startSeconds, endSeconds }: AudioSpan): OpenSpeech | null {
    const span = { startSeconds, endSeconds: Math.min(endSeconds, startSeconds + MAX_OPEN_SECONDS) };
    const features = this.#frames.within(span);
    const rate = this.speakingRate ?? this.#priorRate;
    return features === null ? null : { ...span, pauses: this.#pauses.within(span), features, rate };
  }

  #learnRate(text: string, span: AudioSpan): void {
    const soundBefore = soundClock(span.startSeconds, this.#pauses.within(span));
    this.#found.weight += letterWeights(text, punctuationOf(text))[text.length] ?? 0;
    this.#found.seconds += soundBefore(span.endSeconds);
  }
}
