/** Asks the upstream for a segment of an utterance. Before that it chooses the format, and how loud the segment is made. */
import type { BlockPool } from "../../kit/block-pool.ts";
import { defaultModelFor, splitUpstreamVoice } from "../../protocol/upstream-voice.ts";
import type { StitchBy } from "../../upstream/stitching.ts";
import type { StagedSegment } from "../playback/segment-queue.ts";
import type { Utterance } from "../playback/utterance.ts";
import { chooseSourceFormat, type Need } from "../route.ts";
import type { SessionDeps } from "../session-deps.ts";
import { SpeechLevels } from "../speech-levels.ts";
import { speechRequest } from "./speech-request.ts";
import { UpstreamAttempt } from "./upstream-attempt.ts";

interface Asking {
  readonly utterance: Utterance;
  readonly segment: StagedSegment;
  /** `request-id`s of the segments before it. */
  readonly requestIds: readonly string[];
  readonly wantsTiming: boolean;
  /** Speech in hand that is heard before, ms. Absent: nobody hears anything yet. */
  readonly aheadMs?: number | undefined;
  /** Utterances whose upstream refused the text around a segment: the rest of them is asked for without it. */
  readonly stitchBy: WeakMap<Utterance, StitchBy>;
  /** See UpstreamAttempt. */
  readonly blocks?: BlockPool;
  readonly onBilled: (characters: number) => void;
  /** Fields that the voice's service can't do. */
  readonly onIgnored?: (fields: readonly string[]) => void;
  /** See UpstreamAttempt. */
  readonly onNews: () => void;
}

export function openAttempt(deps: SessionDeps, asking: Asking): UpstreamAttempt {
  const { utterance, segment, requestIds, wantsTiming, aheadMs, stitchBy, blocks, onIgnored } = asking;
  const voiceId = utterance.voiceIds[0] ?? "";
  const choice = {
    outputFormat: utterance.sourceFormat,
    wantsTiming,
    aheadMs,
    voiceId,
    modelId: defaultModelFor(voiceId, deps.settings.model, deps.settings.ownVoices),
    subject: utterance.subject,
    utterance: utterance.identity,
  };
  const around = {
    before: utterance.spoken.spoken.slice(0, segment.start),
    behind: utterance.textBehind(segment),
    requestIds,
  };
  const stitchedBy = (by: StitchBy) =>
    speechRequest(utterance.template, segment, { choice, neighbours: { ...around, by } });
  return new UpstreamAttempt({
    upstream: deps.upstream,
    request: stitchedBy(stitchBy.get(utterance) ?? "ids"),
    restitched: (by) => {
      stitchBy.set(utterance, by);
      return stitchedBy(by);
    },
    segment,
    clock: deps.clock,
    counters: deps.counters,
    firstAudioMs: deps.settings.firstAudioMs,
    ...(blocks === undefined ? {} : { blocks }),
    onBilled: asking.onBilled,
    ...(onIgnored === undefined ? {} : { onIgnored }),
    onNews: asking.onNews,
    traced: utterance.trace,
  });
}

/** Once for all its requests; its voice is known. */
export function chooseFormat(
  deps: SessionDeps,
  utterance: Utterance,
  { needs, isMixed = false }: { readonly needs: readonly Need[]; readonly isMixed?: boolean },
): void {
  const { ownVoices } = deps.settings;
  const isFirstUpstreams = utterance.voiceIds.every(
    (id) => splitUpstreamVoice(id) === null && ownVoices?.has(id) !== true,
  );
  const opusBitrateKbps = isFirstUpstreams ? deps.settings.opusBitrateKbps : null;
  const isLevelled = isMixed || targetOf(deps, utterance) !== 0;
  utterance.chooseSourceFormat(chooseSourceFormat(needs, { opusBitrateKbps, isLevelled }));
  chooseLevel(deps, utterance);
}

/** How loud it is made; its format is known. */
export function chooseLevel(deps: SessionDeps, utterance: Utterance): void {
  const targetLufs = targetOf(deps, utterance);
  if (targetLufs === 0) return;
  const { voiceIds, modelId = deps.settings.model, sourceFormat } = utterance;
  utterance.levels = new SpeechLevels((standIn) => {
    const speakers = standIn === null ? voiceIds : [standIn];
    return deps.loudness.levelFor({ voiceIds: speakers, modelId, sourceFormat, targetLufs });
  });
}

/** LUFS; 0: as it comes. */
function targetOf({ settings }: SessionDeps, { loudnessLufs }: Utterance): number {
  return loudnessLufs ?? settings.loudnessLufs;
}
