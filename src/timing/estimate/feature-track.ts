/** What is known of the sound of a response whose text has no times: how loud and how bright it is, frame by frame. */
import type { SoundFrames } from "../../audio/sound-meter.ts";

/** A stretch of it, a number a frame; NaN = not known. */
export interface SoundTrack {
  /** When the first frame begins, and the last one ends; seconds of the response. */
  readonly fromSeconds: number;
  readonly untilSeconds: number;
  /** dB below what is loud in this stretch. */
  readonly levels: Float64Array;
  /** 0 = a hum, 1 = all of it is high. */
  readonly brightness: Float64Array;
}

/**
 * Frames kept: half a minute. A longer stretch is not listened to: finding letters in so much takes some ten milliseconds
 * of everybody's time, and a response without timing may be of any length.
 */
const MAX_SOUND_FRAMES = 3000;
/** Frames before and behind count half: a frame is shorter than a period of a low voice. */
const NEIGHBOUR = 0.5;
/** Share of the frames that are not as loud as what is loud. */
const LOUD_SHARE = 0.95;
/** Added to each energy, so that nothing at all is quiet and not bright. */
const FLOOR_ENERGY = 10;

/** The frames of a track that are nearest to a stretch of it; null = none. */
export function partOf(track: SoundTrack, fromSeconds: number, untilSeconds: number): SoundTrack | null {
  const perSecond = track.levels.length / (track.untilSeconds - track.fromSeconds);
  const from = Math.max(0, Math.round((fromSeconds - track.fromSeconds) * perSecond));
  const until = Math.min(track.levels.length, Math.round((untilSeconds - track.fromSeconds) * perSecond));
  if (until <= from) return null;
  return {
    fromSeconds: track.fromSeconds + from / perSecond,
    untilSeconds: track.fromSeconds + until / perSecond,
    levels: track.levels.subarray(from, until),
    brightness: track.brightness.subarray(from, until),
  };
}

export class Sounds {
  #frames: SoundFrames[] = [];
  #count = 0;
  #frameSeconds = 1;

  /** Rising: behind all that were added before, and frames as long as theirs. The oldest make room. */
  add(frames: SoundFrames): void {
    this.#frameSeconds = frames.frameSeconds;
    this.#frames.push(frames);
    this.#count += frames.energies.length;
    while (this.#count > MAX_SOUND_FRAMES)
      this.#count -= this.#frames.shift()?.energies.length ?? this.#count;
  }

  /** The frames nearest to a stretch; null = nothing is known of it, or it is too long. */
  within(fromSeconds: number, untilSeconds: number): SoundTrack | null {
    const first = Math.round(fromSeconds / this.#frameSeconds);
    const count = Math.round(untilSeconds / this.#frameSeconds) - first;
    if (this.#frames.length === 0 || !(count > 0) || count > MAX_SOUND_FRAMES) return null;
    const energies = this.#gather(first, count, ({ energies }) => energies);
    const steps = this.#gather(first, count, ({ stepEnergies }) => stepEnergies);
    const levels = energies.map((energy) => 10 * Math.log10(energy + FLOOR_ENERGY));
    const known = levels.filter((level) => !Number.isNaN(level)).sort();
    const loud = known[Math.min(Math.floor(known.length * LOUD_SHARE), known.length - 1)];
    if (loud === undefined) return null;
    return {
      fromSeconds: first * this.#frameSeconds,
      untilSeconds: (first + count) * this.#frameSeconds,
      levels: levels.map((level) => level - loud),
      brightness: steps.map((step, i) => step / (4 * ((energies[i] ?? 0) + FLOOR_ENERGY))),
    };
  }

  /** Nothing is asked any more of what lies before. */
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
