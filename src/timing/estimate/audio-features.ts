/** What is heard of a response where it has no times: its pauses, its sound, and how fast its voice speaks. */
import type { Silence } from "../../audio/pause-finder.ts";
import type { SoundFrames } from "../../audio/sound-meter.ts";
import { MIN_PACE_SECONDS } from "../draft.ts";
import { Sounds, type SoundTrack } from "./feature-track.ts";
import { type OpenSpeech, USUAL_PACE, type VoicePace } from "./open-text.ts";
import { Pauses, soundClock } from "./pauses.ts";
import { letterWeights, marksOf } from "./punctuation.ts";

/** More than this is not looked at: work grows with it. */
const MAX_OPEN_SECONDS = 20;
/** How far a voice that was heard may speak on at another pace; and how much more after so much sound. */
const KNOWN_SPREAD = 0.07;
const SPREAD_SECONDS = 0.1;

export class HeardAudio {
  readonly #pauses = new Pauses();
  readonly #sounds = new Sounds();
  readonly #priorPace: VoicePace;
  /** Of text without times that was found in its audio: the weight of its letters, and its sound. */
  readonly #found = { weight: 0, seconds: 0 };

  /** `pace`: how the voice has spoken so far, if that is known. */
  constructor(pace: VoicePace | null) {
    this.#priorPace = pace ?? USUAL_PACE;
  }

  add(pauses: readonly Silence[] | undefined, sound: SoundFrames | null | undefined): void {
    if (pauses !== undefined) this.#pauses.add(pauses);
    if (sound) this.#sounds.add(sound);
  }

  /** Nothing is asked any more of what lies before. */
  forgetBefore(seconds: number): void {
    this.#pauses.forgetBefore(seconds);
    this.#sounds.forgetBefore(seconds);
  }

  within(
    fromSeconds: number,
    untilSeconds: number,
  ): { readonly pauses: readonly Silence[]; readonly sound: SoundTrack | null } {
    return {
      pauses: this.#pauses.within(fromSeconds, untilSeconds),
      sound: this.#sounds.within(fromSeconds, untilSeconds),
    };
  }

  silentSeconds(fromSeconds: number, untilSeconds: number): number {
    return this.#pauses
      .within(fromSeconds, untilSeconds)
      .reduce((sum, pause) => sum + pause.endSeconds - pause.startSeconds, 0);
  }

  /** What has come behind `fromSeconds`, no more than is looked at; null: nothing is known of its sound. */
  openSpeech(fromSeconds: number, audioSeconds: number): OpenSpeech | null {
    const untilSeconds = Math.min(audioSeconds, fromSeconds + MAX_OPEN_SECONDS);
    const { pauses, sound } = this.within(fromSeconds, untilSeconds);
    const pace = this.voicePace ?? this.#priorPace;
    return sound === null ? null : { fromSeconds, untilSeconds, pauses, sound, pace };
  }

  /** The text was found in this stretch. */
  learnPace(text: string, fromSeconds: number, untilSeconds: number): void {
    const soundBefore = soundClock(fromSeconds, this.#pauses.within(fromSeconds, untilSeconds));
    this.#found.weight += letterWeights(text, marksOf(text))[text.length] ?? 0;
    this.#found.seconds += soundBefore(untilSeconds);
  }

  /** How fast the voice speaks, as far as text without times tells; null: it does not. */
  get voicePace(): VoicePace | null {
    const { weight, seconds } = this.#found;
    if (seconds < MIN_PACE_SECONDS || weight === 0) return null;
    return { weightASecond: weight / seconds, spread: KNOWN_SPREAD + SPREAD_SECONDS / seconds };
  }
}
