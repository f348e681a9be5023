/** Decides where a piece's audio and characters are cut into chunks. Pure; all positions are relative to the piece. */
import type { Cut, PieceTiming } from "./align.ts";

export interface ChunkPlan {
  /** Samples at the engine's rate. */
  readonly toSample: number;
  /** Characters up to here belong to this and earlier chunks. */
  readonly toOriginal: number;
  readonly toNormalized: number;
}

export interface ChunkLimits {
  /** Aim: a chunk is at least this long where the words allow it. */
  readonly targetSamples: number;
  /** Hard: no chunk is longer (an output line has a bound). */
  readonly maxSamples: number;
  /** Hard: most characters of either alignment in a chunk. */
  readonly maxCharacters: number;
}

/**
 * The next chunk after `from`, or undefined where nothing certain is left. It ends between words; only a word longer
 * than the hard limits is cut inside, and its characters go with the samples that they begin in.
 */
export function planChunk(
  timing: PieceTiming,
  sampleRate: number,
  options: { readonly from: ChunkPlan; readonly limits: ChunkLimits },
): ChunkPlan | undefined {
  const { from, limits } = options;
  const fits = (plan: ChunkPlan) =>
    plan.toSample - from.toSample <= limits.maxSamples &&
    plan.toOriginal - from.toOriginal <= limits.maxCharacters &&
    plan.toNormalized - from.toNormalized <= limits.maxCharacters;
  let best: ChunkPlan | undefined;
  for (const cut of timing.cuts) {
    const plan = planAt(cut, sampleRate);
    if (!isAfter(plan, from)) continue;
    if (!fits(plan)) return best ?? insideWord(timing, sampleRate, { from, limits, to: plan });
    best = plan;
    if (plan.toSample - from.toSample >= limits.targetSamples) break;
  }
  return best;
}

function planAt(cut: Cut, sampleRate: number): ChunkPlan {
  return { toSample: sampleAt(cut.atMs, sampleRate), toOriginal: cut.original, toNormalized: cut.normalized };
}

export function sampleAt(ms: number, sampleRate: number): number {
  return Math.round((ms / 1000) * sampleRate);
}

function isAfter(plan: ChunkPlan, from: ChunkPlan): boolean {
  return (
    plan.toSample > from.toSample ||
    plan.toOriginal > from.toOriginal ||
    plan.toNormalized > from.toNormalized
  );
}

/** Part of a stretch that is too long: as many samples as fit, and the characters that begin in them. */
function insideWord(
  timing: PieceTiming,
  sampleRate: number,
  options: { readonly from: ChunkPlan; readonly limits: ChunkLimits; readonly to: ChunkPlan },
): ChunkPlan {
  const { from, limits, to } = options;
  const toSample = Math.min(to.toSample, from.toSample + limits.maxSamples);
  const isAll = toSample === to.toSample;
  const characters = (startMs: Float64Array, begin: number, end: number) => {
    const most = Math.min(end, begin + limits.maxCharacters);
    let index = begin;
    while (index < most && (isAll || sampleAt(startMs[index] ?? 0, sampleRate) < toSample)) index++;
    return index;
  };
  const toOriginal = characters(timing.original.startMs, from.toOriginal, to.toOriginal);
  const toNormalized = characters(timing.normalized.startMs, from.toNormalized, to.toNormalized);
  // Very many characters in very little audio: the audio leaves with their last part.
  const isHeldBack = isAll && (toOriginal < to.toOriginal || toNormalized < to.toNormalized);
  return { toSample: isHeldBack ? from.toSample : toSample, toOriginal, toNormalized };
}
