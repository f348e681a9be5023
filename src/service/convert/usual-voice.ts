/**
 * What is usual of whoever speaks: the pitch so far and the loudest so far. Narrow noise of consonants correlates at 400 to
 * 500 Hz nearly as well as a vowel does at its pitch; what gives it away is that it is weak and far from the usual pitch.
 */

/** Part of each new frame in the usual pitch, once there are enough: it follows within seconds. */
const PITCH_SHARE = 0.005;
/** So much of the loudest power is kept each frame (5 ms): half of it is forgotten in two seconds. */
const PEAK_KEPT = 0.998;
/** Cost of each octave away from the usual pitch: less than what the next octave costs by its longer period. */
const FAR_COST = 0.05;
/** Cost of an octave or more away for each factor of ten below a tenth of the loudest power, of two at the most. */
const WEAK_COST = 0.4;
const WEAK_POWER = 0.1;

export class UsualVoice {
  #octave: number | null = null;
  #frames = 0;
  #peakPower = 0;
  #weakness = 0;

  /** The next frame's power. */
  hear(power: number): void {
    this.#peakPower = Math.max(power, this.#peakPower * PEAK_KEPT);
    const isBelow = Math.log10((WEAK_POWER * this.#peakPower) / Math.max(power, Number.MIN_VALUE));
    this.#weakness = Math.max(0, Math.min(2, isBelow));
  }

  /** A voiced frame's pitch, Hz, once it is decided. */
  learn(hz: number): void {
    const octave = Math.log2(hz);
    this.#frames += 1;
    this.#octave ??= octave;
    this.#octave += (octave - this.#octave) * Math.max(PITCH_SHARE, 1 / this.#frames);
  }

  /** What it costs to believe that the frame heard last has this pitch, Hz; 0 before anything is known. */
  costOf(hz: number): number {
    if (this.#octave === null) return 0;
    const away = Math.abs(Math.log2(hz) - this.#octave);
    return FAR_COST * away + WEAK_COST * this.#weakness * Math.min(1, away);
  }
}
