/**
 * Puts decoded blocks end to end on the audio clock: gapless while they come in time, after a jitter delay when
 * playing starts again, and always knows which position of the timeline is played.
 */
import { type AudioOut, SAMPLE_RATE } from "./audio-out.ts";
import { JitterTarget } from "./jitter-target.ts";
import { Playhead } from "./playhead.ts";

/** Closer to now than this, a block may be too late for the device. */
const SAFETY_S = 0.005;
/** Softens the edge where audio starts again after it ran dry mid-word. */
const FADE_IN_SAMPLES = 144;
/** Bound on what is scheduled ahead (32 MB at 48 kHz); a burst beyond it is dropped and counted. */
const MAX_AHEAD_S = 180;

export interface Placement {
  /** Milliseconds from now until the block is played. */
  readonly untilPlayedMs: number;
}

export class Playout {
  readonly #jitter = new JitterTarget();
  #out: AudioOut;
  #playhead = new Playhead();
  #endS = 0;
  #isStartExpected = true;
  droppedBlocks = 0;

  constructor(out: AudioOut) {
    this.#out = out;
  }

  get underruns(): number {
    return this.#jitter.underruns;
  }

  /** Timeline position played now, ms. */
  get positionMs(): number {
    return this.#playhead.positionAt(this.#out.playedS());
  }

  /** Audio scheduled and not yet played, ms. */
  get aheadMs(): number {
    return Math.max(0, (this.#endS - this.#out.playedS()) * 1000);
  }

  get level(): number {
    return this.#out.level();
  }

  /** An utterance begins: that nothing was scheduled before it is no underrun. */
  expectStart(): void {
    this.#isStartExpected = true;
  }

  /** null where the block was dropped. */
  push(samples: Float32Array<ArrayBuffer>, atMs: number): Placement | null {
    const nowS = this.#out.nowS();
    let startS = this.#endS;
    if (startS < nowS + SAFETY_S) {
      if (!this.#isStartExpected) {
        this.#jitter.ranDry();
        fadeIn(samples);
      }
      startS = Math.ceil((nowS + this.#jitter.delayMs / 1000) * SAMPLE_RATE) / SAMPLE_RATE;
    }
    this.#isStartExpected = false;
    if (startS > nowS + MAX_AHEAD_S) {
      this.droppedBlocks += 1;
      return null;
    }
    const durationS = samples.length / SAMPLE_RATE;
    this.#out.schedule(samples, startS);
    this.#playhead.schedule({ startS, atMs, durationMs: durationS * 1000 });
    // On the grid of samples, so that neighbours meet exactly whatever the sum's rounding.
    this.#endS = Math.round((startS + durationS) * SAMPLE_RATE) / SAMPLE_RATE;
    this.#jitter.ranSmoothly(durationS * 1000);
    return { untilPlayedMs: (startS - this.#out.playedS()) * 1000 };
  }

  /** Stops what sounds and forgets what was to come; the position stays where it is. */
  silence(): void {
    this.#playhead.cut(this.#out.playedS());
    this.#out.silence();
    this.#endS = 0;
    this.#isStartExpected = true;
  }

  /** Moves to another out; at most the audio ahead is lost. */
  use(out: AudioOut): void {
    const positionMs = this.positionMs;
    this.#out.silence();
    this.#out.close();
    this.#out = out;
    this.#playhead = new Playhead(positionMs);
    this.#endS = 0;
    this.#isStartExpected = true;
  }

  /** Another timeline: what was played before means nothing on it. */
  restart(atMs: number): void {
    this.silence();
    this.#playhead = new Playhead(atMs);
  }
}

function fadeIn(samples: Float32Array): void {
  const length = Math.min(FADE_IN_SAMPLES, samples.length);
  for (let index = 0; index < length; index += 1) samples[index] = ((samples[index] ?? 0) * index) / length;
}
