/** Features of audio whose text has no times, frame by frame: its level and its spectral tilt. */
import type { SoundFrames } from "../../audio/analysis/sound-meter.ts";
import type { AudioSpan } from "../spans.ts";

/** Those of a span, a number a frame; NaN = not known. Its ends are those of its first and its last frame. */
export interface FeatureTrack extends AudioSpan {
  /** dB below what is loud in this span. */
  readonly levels: Float64Array;
  /** Spectral tilt: 0 = a hum, 1 = all of it is high. */
  readonly tilts: Float64Array;
}

/**
 * Frames kept: half a minute. A longer span is not aligned: finding letters in so much takes some ten milliseconds
 * of everybody's time, and a response without timing may be of any length.
 */
const MAX_FRAMES = 3000;
/** Frames before and behind count half: a frame is shorter than a period of a low voice. */
const NEIGHBOUR = 0.5;
/** Share of the frames that are not as loud as what is loud. */
const LOUD_SHARE = 0.95;
/** Added to each energy, so that nothing at all is quiet and not tilted. */
const FLOOR_ENERGY = 10;

/** The frames of a track that are nearest to a span of it; null = none. */
export function partOf(track: FeatureTrack, { startSeconds, endSeconds }: AudioSpan): FeatureTrack | null {
  const perSecond = track.levels.length / (track.endSeconds - track.startSeconds);
  const from = Math.max(0, Math.round((startSeconds - track.startSeconds) * perSecond));
  const until = Math.min(track.levels.length, Math.round((endSeconds - track.startSeconds) * perSecond));
  if (until <= from) return null;
  return {
    startSeconds: track.startSeconds + from / perSecond,
    endSeconds: track.startSeconds + until / perSecond,
    levels: track.levels.subarray(from, until),
    tilts: track.tilts.subarray(from, until),
  };
}

export class FeatureFrames {
  #frames: SoundFrames[] = [];
  #count = 0;
  #frameSeconds = 1;

  /** Rising: behind all that were added before, and frames as long as theirs. The oldest make room. */
  add(frames: SoundFrames): void {
    this.#frameSeconds = frames.frameSeconds;
    this.#frames.push(frames);
    this.#count += frames.energies.length;
    while (this.#count > MAX_FRAMES) this.#count -= this.#frames.shift()?.energies.length ?? this.#count;
  }

  /** The frames nearest to a span; null = nothing is known of it, or it is too long. */
  within({ startSeconds, endSeconds }: AudioSpan): FeatureTrack | null {
    const first = Math.round(startSeconds / this.#frameSeconds);
    const count = Math.round(endSeconds / this.#frameSeconds) - first;
    if (this.#frames.length === 0 || !(count > 0) || count > MAX_FRAMES) return null;
    const energies = this.#gather(first, count, ({ energies }) => energies);
    const steps = this.#gather(first, count, ({ stepEnergies }) => stepEnergies);
    const levels = energies.map((energy) => 10 * Math.log10(energy + FLOOR_ENERGY));
    const known = levels.filter((level) => !Number.isNaN(level)).sort();
    const loud = known[Math.min(Math.floor(known.length * LOUD_SHARE), known.length - 1)];
    if (loud === undefined) return null;
    return {
      startSeconds: first * this.#frameSeconds,
      endSeconds: (first + count) * this.#frameSeconds,
      levels: levels.map((level) => level - loud),
      tilts: steps.map((step, i) => step / (4 * ((energies[i] ?? 0) + FLOOR_ENERGY))),
    };
  }

  /** Nobody asks for anything before that any more. */
  forgetBefore(seconds: number): void {
    const first = Math.floor(seconds / this.#frameSeconds);
    const isBehind = ({ first: at, energies }: SoundFrames): boolean => at + energies.length > first;
    if (this.#frames[0] === undefined || isBehind(this.#frames[0])) return;
    this.#frames = this.#frames.filter(isBehind);
    this.#count = this.#frames.reduce((count, { energies }) => count + energies.length, 0);
  }

  /** One figure of each frame, evened out with its neighbours. */
  #gather(first: number, count: number, figure: (frames: SoundFrames) => readonly number[]): Float64Array {
    const plain = new Float64Array(count + 2).fill(Number.NaN);
    for (const frames of this.#frames) {
      const values = figure(frames);
      const from = Math.max(0, first - 1 - frames.first);
      for (let i = from; i < values.length && frames.first + i - first + 1 < plain.length; i += 1)
        plain[frames.first + i - first + 1] = values[i] ?? Number.NaN;
    }
    return Float64Array.from({ length: count }, (_, i) => {
      const [own = Number.NaN, before = own, behind = own] = [plain[i + 1], plain[i], plain[i + 2]];
      const sum = (Number.isNaN(before) ? own : before) + (Number.isNaN(behind) ? own : behind);
      return (own + NEIGHBOUR * sum) / (1 + 2 * NEIGHBOUR);
    });
  }
}
