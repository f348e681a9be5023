/**
 * Times of text that came without any: by the words that were found in its audio (aligner.ts), and where none were, by its
 * pauses and how fast its voice speaks.
 */
import type { Silence } from "../../audio/analysis/pause-finder.ts";
import type { FoundWord } from "../aligner.ts";
import type { AudioSpan, TextPart } from "../spans.ts";
import type {
  Needed,
  OpenEstimate,
  SpeakingRate,
  SpokenClock,
  TimingEstimator,
} from "../timing-estimator.ts";
import { AlignedText } from "./aligned-text.ts";
import { FoundClock, FoundWords } from "./found-words.ts";
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
  readonly #found = new FoundWords();
  /** Whether its pauses are known. */
  #isHeard = false;
  readonly #priorRate: SpeakingRate;
  /** Text whose audio is known: the weight of its letters, and the length of its sound. */
  readonly #known = { weight: 0, seconds: 0 };

  /** `speakingRate`: of the voice so far, if that is known. */
  constructor(speakingRate: SpeakingRate | null) {
    this.#priorRate = speakingRate ?? USUAL_RATE;
  }

  hear(pauses: readonly Silence[] | undefined): void {
    if (pauses === undefined) return;
    this.#isHeard = true;
    this.#pauses.add(pauses);
  }

  find(words: readonly FoundWord[]): void {
    this.#found.add(words);
  }

  dropFound(): void {
    this.#found.clear();
  }

  forgetBefore(seconds: number): void {
    this.#pauses.forgetBefore(seconds);
    this.#found.forgetBefore(seconds);
  }

  silentSeconds(span: AudioSpan): number {
    return this.#pauses.within(span).reduce((sum, pause) => sum + pause.endSeconds - pause.startSeconds, 0);
  }

  within(part: TextPart, span: AudioSpan): SpokenClock {
    if (this.#isHeard) this.#learnRate(part.text, span);
    const words = this.#found.within(part, span);
    if (words.length > 0) return new FoundClock(part, span, { words, soundSeconds: this.#firstSound(span) });
    const pauses = this.#isHeard ? this.#pauses.within(span) : null;
    return new AlignedText(part.text, { ...span, pauses });
  }

  found(part: TextPart, span: AudioSpan): OpenEstimate | null {
    // The text's last word waits for the end of the audio, as all of that is to have text.
    const endOfText = part.from + part.text.trimEnd().length;
    const words = this.#found.within(part, span).filter(({ end }) => end < endOfText);
    const last = words.at(-1);
    if (last === undefined) return null;
    const end = last.end - part.from;
    const text = { text: part.text.slice(0, end), from: part.from };
    const found = { words, soundSeconds: this.#firstSound(span) };
    return { end, clock: new FoundClock(text, { ...span, endSeconds: last.endSeconds }, found) };
  }

  open({ text }: TextPart, span: AudioSpan, needed: Needed): OpenEstimate | null {
    if (!this.#isHeard) return null;
    const estimate = estimateOpen(text, this.#speechIn(span), needed);
    if (estimate === null) return null;
    const { end, clock } = estimate;
    this.#learnRate(text.slice(0, end), { ...span, endSeconds: clock.secondsAt(end) });
    return estimate;
  }

  get speakingRate(): SpeakingRate | null {
    const { weight, seconds } = this.#known;
    if (seconds < MIN_RATE_SECONDS || weight === 0) return null;
    return { weightASecond: weight / seconds, spread: KNOWN_SPREAD + SPREAD_SECONDS / seconds };
  }

  /** Behind the silence at the beginning. */
  #firstSound(span: AudioSpan): number {
    const [first] = this.#pauses.within(span);
    return first !== undefined && first.startSeconds <= span.startSeconds
      ? first.endSeconds
      : span.startSeconds;
  }

  #speechIn({ startSeconds, endSeconds }: AudioSpan): OpenSpeech {
    const span = { startSeconds, endSeconds: Math.min(endSeconds, startSeconds + MAX_OPEN_SECONDS) };
    return { ...span, pauses: this.#pauses.within(span), rate: this.speakingRate ?? this.#priorRate };
  }

  #learnRate(text: string, span: AudioSpan): void {
    const soundBefore = soundClock(span.startSeconds, this.#pauses.within(span));
    this.#known.weight += letterWeights(text, punctuationOf(text))[text.length] ?? 0;
    this.#known.seconds += soundBefore(span.endSeconds);
  }
}
