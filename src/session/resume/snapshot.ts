/** A cut, what of the utterance is kept there, and what both ways of finding the place where it goes on have in common. */
import type { Timing } from "../../protocol/vocabulary.ts";
import type { Segment } from "../../text/segmenter.ts";
import type { SynthesisChunk } from "../../upstream/types.ts";
import type { ComingAudio, SegmentSpan } from "../heard-share.ts";
import type { SegmentPlayer } from "../playback/segment-player.ts";
import type { TimedSegment } from "../playback/segment-queue.ts";
import type { Utterance } from "../playback/utterance.ts";
import { restOf } from "../remainder.ts";
import { RestartPlaces } from "../restart-places.ts";
import { newTimes } from "../synthesis/segment-times.ts";
import { SoundFinder } from "../synthesis/sound-finder.ts";
import type { Attempt } from "../synthesis/upstream-attempt.ts";
import { cutOut, placeBehind } from "./audio-cut.ts";
import { ReplayAttempt } from "./replay-attempt.ts";
import type { PlacedSlice, ResumeBuffer } from "./resume-buffer.ts";

/** Before the first word, where nothing else is spoken: its first consonant; ms. */
export const LEAD_IN_MS = 40;
/** Larger than any rest of a response that is held back; an upstream that ignores that is not kept. */
export const MAX_KEPT_BYTES = 4 * 1024 * 1024;

export interface KeepCut {
  readonly utterance: Utterance;
  /** Where it was cut, and where its pushed audio ends. */
  readonly cutTicks: number;
  readonly writeTicks: number;
  readonly recent: ResumeBuffer;
  /** The one that is being pushed, if it is this utterance's. */
  readonly player: SegmentPlayer | null;
  /** The audio that had come of that. */
  readonly coming: ComingAudio | null;
  /** What was asked for behind it; what has come of that is taken from it. */
  readonly behind: readonly Attempt[];
  readonly nowMs: number;
}

export interface KeptSpeech {
  readonly utterance: Utterance;
  /** What is spoken first, in its order: nothing where no whole word of it has come. */
  readonly attempts: readonly ReplayAttempt[];
  /** Offset in the spoken text where it goes on. */
  readonly spokenStart: number;
  /** Where on the former timeline it goes on. */
  readonly fromTicks: number;
  /** Text that was asked for and did not come. */
  readonly rest: readonly Segment[];
  /** How that place in the text is known. */
  readonly timing: Timing;
  /** How far the audio there may be from the text, ms, where that goes by the share of the audio; else null. */
  readonly boundMs: number | null;
}

/** What can go on. */
export interface KeptCut {
  readonly utterance: Utterance;
  /** Asked for when it goes on: most never do, and where nothing was timed the word of the cut is listened for, some milliseconds long. */
  readonly speech: () => KeptSpeech;
}

/** A cut with all that is taken from the player for it. */
export interface OpenedCut extends Omit<KeepCut, "player"> {
  /** The one that is being pushed, or in which the utterance has failed. */
  readonly open: Segment | null;
  /** All audio of that has come. */
  readonly isOpenComplete: boolean;
  /** Its own audio, pushed or not, rising. */
  readonly placed: readonly PlacedSlice[];
  /** Where that ends. */
  readonly haveTicks: number;
  /** The text asked for behind it. */
  readonly segments: readonly Segment[];
  readonly places: RestartPlaces;
}

export function openCut({ player, ...cut }: KeepCut): OpenedCut {
  const { utterance, writeTicks } = cut;
  const [lost = null, ...behindLost] = utterance.failed ?? [];
  const open = player?.segment ?? lost;
  const isOpenComplete = player === null ? lost === null : player.isWhole;
  const slices = player?.takeRest(cut.cutTicks) ?? [];
  // Others may have been pushed right before it and right behind.
  const startTicks = utterance.startTicks ?? 0;
  const own = cut.recent
    .since(startTicks)
    .filter((recent) => recent.startTicks >= startTicks && recent.startTicks < writeTicks);
  const placed = [...own, ...placeBehind(slices, writeTicks)];
  const haveTicks = placed.reduce((end, { startTicks, slice }) => Math.max(end, startTicks + slice.ticks), 0);
  const asked = cut.behind.map(({ segment }) => segment);
  const segments = [...behindLost, ...asked].map(({ text, start, end }) => ({ text, start, end }));
  return { ...cut, open, isOpenComplete, placed, haveTicks, segments, places: new RestartPlaces(utterance) };
}

/** Answers that stand behind and have come whole, the first ones in a row; what is left has to be asked for again. */
export function keepBehind(cut: OpenedCut): ReplayAttempt[] {
  const kept: ReplayAttempt[] = [];
  for (const attempt of cut.behind) {
    if (!attempt.isComplete || attempt.error !== null || attempt.waitingBytes > MAX_KEPT_BYTES) break;
    const chunks: SynthesisChunk[] = [];
    // The memory of what is taken is used again.
    for (let chunk = attempt.take(); chunk !== undefined; chunk = attempt.take()) {
      chunks.push({ ...chunk, audio: new Uint8Array(chunk.audio) });
    }
    const { sourceFormat, timing, wantsTiming, requestId } = attempt;
    const segment = timedAt(cut, attempt.segment);
    kept.push(new ReplayAttempt({ segment, sourceFormat, timing, wantsTiming, requestId, chunks }));
  }
  return kept;
}

/** Text that is said from kept audio: it has arrived and is cut now. */
export function timedAt({ utterance, nowMs }: OpenedCut, { text, start, end }: Segment): TimedSegment {
  const times = newTimes(utterance.spoken.clientRange(start, end), { arrivedMs: nowMs, cutMs: nowMs });
  return { text, start, end, times };
}

/** The text of the segment that was being spoken from `spokenStart` on, then the segments behind it. */
export function withRest({ open, utterance, segments }: OpenedCut, spokenStart: number): Segment[] {
  const rest = open === null ? null : restOf(utterance, open, spokenStart);
  return rest === null ? [...segments] : [rest, ...segments];
}

/** Whether anything of the segment sounds behind the cut. Compressed audio is taken for sound. */
export function soundsBehind({ utterance, cutTicks, placed }: OpenedCut, place: SegmentSpan): boolean {
  const untilTicks = place.endTicks ?? Number.POSITIVE_INFINITY;
  const audio = cutOut(placed, { fromTicks: cutTicks, untilTicks });
  return audio !== null && new SoundFinder(utterance.sourceFormat).push(audio.bytes) !== null;
}
