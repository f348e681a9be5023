/** The timing that a chunk is sent with: its characters, on the response's timeline. */
import type { Alignment } from "../../../timing/alignment.ts";
import type { ChunkTiming, TruthWord } from "../messages.ts";
import type { PlannedPiece } from "../plan/utterance-plan.ts";
import type { CharacterTimes, PieceTiming } from "./align.ts";
import type { ChunkPlan } from "./chunker.ts";

/** Where a piece begins in the response: samples of the engine, and characters of both alignments. */
export interface PieceOrigin {
  readonly sample: number;
  readonly original: number;
  readonly normalized: number;
}

export interface TimedPiece {
  readonly plan: PlannedPiece;
  readonly timing: PieceTiming;
  readonly origin: PieceOrigin;
  /** The engine's, Hz. */
  readonly sampleRate: number;
}

/** The piece from one place to another. */
interface ChunkRange {
  readonly from: ChunkPlan;
  readonly to: ChunkPlan;
}

/** Sound without characters has this timing. */
export const NO_TIMING: ChunkTiming = {
  alignment: null,
  normalizedAlignment: null,
  voiceSegments: [],
  truth: [],
};

export function timingOfChunk(
  piece: TimedPiece,
  { from, to, wantsTruth }: ChunkRange & { readonly wantsTruth: boolean },
): ChunkTiming {
  const { plan, timing, origin, sampleRate } = piece;
  const { spoken, inputIndex, voiceId } = plan;
  const seconds = (sample: number) => round((origin.sample + sample) / sampleRate);
  const alignment = (
    characters: readonly string[],
    times: CharacterTimes,
    begin: number,
    end: number,
  ): Alignment | null => {
    if (begin === end) return null;
    const absolute = (ms: number) => round(origin.sample / sampleRate + ms / 1000);
    return {
      characters: characters.slice(begin, end),
      character_start_times_seconds: Array.from(times.startMs.subarray(begin, end), absolute),
      character_end_times_seconds: Array.from(times.endMs.subarray(begin, end), absolute),
    };
  };
  return {
    alignment: alignment(spoken.original, timing.original, from.toOriginal, to.toOriginal),
    normalizedAlignment: alignment(spoken.normalized, timing.normalized, from.toNormalized, to.toNormalized),
    voiceSegments: [
      {
        voice_id: voiceId,
        start_time_seconds: seconds(from.toSample),
        end_time_seconds: seconds(to.toSample),
        character_start_index: origin.original + from.toOriginal,
        character_end_index: origin.original + to.toOriginal,
        dialogue_input_index: inputIndex,
      },
    ],
    truth: wantsTruth ? truthOf(piece, { from, to }) : [],
  };
}

function truthOf({ plan, timing, origin, sampleRate }: TimedPiece, { from, to }: ChunkRange): TruthWord[] {
  return timing.words
    .filter((word) => word.normalized >= from.toNormalized && word.normalized < to.toNormalized)
    .map((word) => {
      const span = plan.spoken.spans.find((one) => word.normalized < one.normalizedTo);
      const inSpan = span?.isIdentity === true ? word.normalized - span.normalizedFrom : 0;
      return {
        normalized_character_index: origin.normalized + word.normalized,
        character_index: origin.original + (span?.originalFrom ?? 0) + inSpan,
        length: word.length,
        start_time_seconds: round(origin.sample / sampleRate + word.atMs / 1000),
      };
    });
}

/** To 0.1 ms: shorter lines, and far below what anybody hears. */
function round(seconds: number): number {
  return Math.round(seconds * 10_000) / 10_000;
}
