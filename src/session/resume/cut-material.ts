/** What a snapshot is made of: the audio of a cut, rendered or not, and the text that was asked for. */
import type { Segment } from "../../text/segmenter.ts";
import type { SynthesisChunk } from "../../upstream/types.ts";
import type { ComingAudio } from "../heard-share.ts";
import type { PlacedSlice, RecentAudio } from "../output/recent-audio.ts";
import type { StagedSegment } from "../playback/segment-queue.ts";
import type { SegmentRenderer } from "../playback/segment-renderer.ts";
import type { Utterance } from "../playback/utterance.ts";
import { remainderOf } from "../remainder.ts";
import type { Attempt } from "../synthesis/attempt.ts";
import { newStages } from "../synthesis/segment-stages.ts";
import { placeBehind } from "./audio-cut.ts";
import { ReplayAttempt } from "./replay-attempt.ts";
import type { RestartPlaces } from "./restart-places.ts";

/** Larger than any rest of a response that is held back; an upstream that ignores that is not kept. */
export const MAX_KEPT_BYTES = 4 * 1024 * 1024;

export interface CutPoint {
  readonly utterance: Utterance;
  /** Where it was cut, and where its rendered audio ends. */
  readonly cutTicks: number;
  readonly writeTicks: number;
  readonly recent: RecentAudio;
  /** The one that is being rendered, if it is this utterance's. */
  readonly segmentRenderer: SegmentRenderer | null;
  /** The audio that had come of that. */
  readonly coming: ComingAudio | null;
  /** What was asked for behind it; what has come of that is taken from it. */
  readonly behind: readonly Attempt[];
  readonly nowMs: number;
}

/** A cut with all that is taken from the segment that is rendered. */
export interface OpenedCut extends Omit<CutPoint, "segmentRenderer"> {
  /** The segment that is being rendered, or in which the utterance has failed. */
  readonly open: Segment | null;
  /** All audio of that has come. */
  readonly isOpenComplete: boolean;
  /** Its own audio, rendered or not, rising. */
  readonly placed: readonly PlacedSlice[];
  /** Where that ends. */
  readonly haveTicks: number;
  /** The text asked for behind it. */
  readonly segments: readonly Segment[];
  readonly places: RestartPlaces;
}

export function openCut({ segmentRenderer, ...cut }: CutPoint): OpenedCut {
  const { utterance, writeTicks } = cut;
  const { state } = utterance;
  const [lost = null, ...behindLost] = state.kind === "failed" ? state.lost : [];
  const open = segmentRenderer?.segment ?? lost;
  const isOpenComplete = segmentRenderer === null ? lost === null : segmentRenderer.isWhole;
  const slices = segmentRenderer?.takeRest(cut.cutTicks) ?? [];
  // Others may have been rendered right before it and right behind.
  const startTicks = utterance.startTicks ?? 0;
  const own = cut.recent
    .since(startTicks)
    .filter((placed) => placed.startTicks >= startTicks && placed.startTicks < writeTicks);
  const placed = [...own, ...placeBehind(slices, writeTicks)];
  const haveTicks = placed.reduce((end, { startTicks, slice }) => Math.max(end, startTicks + slice.ticks), 0);
  const asked = cut.behind.map(({ segment }) => segment);
  const segments = [...behindLost, ...asked].map(({ text, start, end }) => ({ text, start, end }));
  return { ...cut, open, isOpenComplete, placed, haveTicks, segments, places: utterance.restartPlaces };
}

/** Answers that stand behind and have come whole, the first ones in a row; what is left has to be asked for again. */
export function replaysBehind(cut: OpenedCut): ReplayAttempt[] {
  const kept: ReplayAttempt[] = [];
  for (const attempt of cut.behind) {
    if (!attempt.isComplete || attempt.error !== null || attempt.waitingBytes > MAX_KEPT_BYTES) break;
    const chunks: SynthesisChunk[] = [];
    // The next `take` uses the memory of this chunk again.
    for (let chunk = attempt.take(); chunk !== undefined; chunk = attempt.take()) {
      chunks.push({ ...chunk, audio: new Uint8Array(chunk.audio) });
    }
    const { sourceFormat, timing, wantsTiming, isLevelled, requestId } = attempt;
    const segment = stagedNow(cut, attempt.segment);
    kept.push(
      new ReplayAttempt({ segment, sourceFormat, timing, wantsTiming, isLevelled, requestId, chunks }),
    );
  }
  return kept;
}

/** Text that is said from kept audio: it has arrived and is cut now. */
export function stagedNow({ utterance, nowMs }: OpenedCut, { text, start, end }: Segment): StagedSegment {
  const stages = newStages(utterance.spoken.clientRange(start, end), {
    arrivedMs: nowMs,
    segmentedMs: nowMs,
  });
  return { text, start, end, stages };
}

/** All text from `spokenStart` on that was spoken or asked for, in its segments. */
export function textFrom({ open, utterance, segments }: OpenedCut, spokenStart: number): Segment[] {
  const { spoken } = utterance.spoken;
  const begun = utterance.transcript.segments
    .filter(({ start }) => start !== open?.start)
    .map(({ start, end }) => ({ text: spoken.slice(start, end), start, end }));
  const spans = open === null ? begun : [...begun, open];
  return [...spans.flatMap((segment) => remainderOf(utterance, segment, spokenStart) ?? []), ...segments];
}
