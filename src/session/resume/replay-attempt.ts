/** Audio that was kept when an utterance was cut, as the answer of an upstream that has come whole. */
import type { Timing } from "../../protocol/vocabulary.ts";
import { TICKS_PER_SECOND } from "../../timing/ticks.ts";
import type { SynthesisChunk } from "../../upstream/types.ts";
import type { StagedSegment } from "../playback/segment-queue.ts";
import type { NormalizedTime, SpokenTime, VoiceSpan } from "../playback/transcript.ts";
import type { PreparedSegment } from "../prepared/prepared-audio.ts";
import type { Attempt } from "../synthesis/attempt.ts";

interface ReplayAttemptOptions {
  readonly segment: StagedSegment;
  readonly sourceFormat: string;
  readonly timing: Timing;
  readonly hasSteadyTimes?: boolean;
  readonly hasNoTimes?: boolean;
  readonly standIn?: string | null;
  readonly wantsTiming: boolean;
  readonly isLevelled: boolean;
  readonly requestId: string | null;
  readonly chunks: readonly SynthesisChunk[];
}

export class ReplayAttempt implements Attempt {
  readonly segment: StagedSegment;
  readonly sourceFormat: string;
  readonly timing: Timing;
  readonly hasSteadyTimes: boolean;
  readonly hasNoTimes: boolean;
  readonly standIn: string | null;
  readonly wantsTiming: boolean;
  readonly isLevelled: boolean;
  readonly requestId: string | null;
  readonly isComplete = true;
  readonly error = null;
  readonly #options: ReplayAttemptOptions;
  #chunks: readonly SynthesisChunk[];

  constructor(options: ReplayAttemptOptions) {
    this.#options = options;
    this.segment = options.segment;
    this.sourceFormat = options.sourceFormat;
    this.timing = options.timing;
    this.hasSteadyTimes = options.hasSteadyTimes ?? false;
    this.hasNoTimes = options.hasNoTimes ?? false;
    this.standIn = options.standIn ?? null;
    this.wantsTiming = options.wantsTiming;
    this.isLevelled = options.isLevelled;
    this.requestId = options.requestId;
    this.#chunks = options.chunks;
  }

  /** The same once more, whatever was taken of this one. */
  again(): ReplayAttempt {
    return new ReplayAttempt(this.#options);
  }

  get hasChunk(): boolean {
    return this.#chunks.length > 0;
  }
  get waitingBytes(): number {
    return this.#chunks.reduce((bytes, { audio }) => bytes + audio.byteLength, 0);
  }
  take(): SynthesisChunk | undefined {
    const [chunk, ...rest] = this.#chunks;
    this.#chunks = rest;
    return chunk;
  }
  abort(): void {
    this.#chunks = [];
  }
}

/** A sound, all at once, which is played as it is. */
export function soundAttempt(segment: StagedSegment, sourceFormat: string, audio: Uint8Array): ReplayAttempt {
  return new ReplayAttempt({
    segment,
    sourceFormat,
    timing: "exact",
    wantsTiming: false,
    isLevelled: true,
    requestId: null,
    chunks: [{ audio, alignment: null, normalizedAlignment: null, voiceSegments: [] }],
  });
}

/** The answer to a segment that was asked for ahead. */
export function preparedAttempt(
  segment: StagedSegment,
  sourceFormat: string,
  prepared: PreparedSegment,
): ReplayAttempt {
  return new ReplayAttempt({ ...prepared, segment, sourceFormat, wantsTiming: true, isLevelled: false });
}

/** What was being spoken, from the timeline that was cut. */
interface CutSpeech {
  readonly segment: StagedSegment;
  readonly sourceFormat: string;
  readonly audio: Uint8Array;
  /** Times of the segment's characters on the timeline that was cut; none: nothing of it was timed. */
  readonly characters: readonly SpokenTime[];
  readonly normalized: readonly NormalizedTime[];
  readonly voices: readonly VoiceSpan[];
  /** Inputs of a dialogue that were heard whole: as an upstream would, the attempt counts those that it says. */
  readonly inputsBefore: number;
  /** Where the audio began there. */
  readonly fromTicks: number;
  /** All of the spoken text. */
  readonly text: string;
  readonly timing: Timing;
}

/** One chunk, all at once. */
export function replayOf(cut: CutSpeech): ReplayAttempt {
  const { segment, sourceFormat, timing } = cut;
  const seconds = (ticks: number): number => Math.max(0, ticks - cut.fromTicks) / TICKS_PER_SECOND;
  const chunk: SynthesisChunk = {
    audio: cut.audio,
    alignment:
      cut.characters.length === 0
        ? null
        : {
            characters: cut.characters.map((time) => cut.text.slice(time.start, time.end)),
            character_start_times_seconds: cut.characters.map((time) => seconds(time.startTicks)),
            character_end_times_seconds: cut.characters.map((time) => seconds(time.endTicks)),
          },
    normalizedAlignment:
      cut.normalized.length === 0
        ? null
        : {
            characters: cut.normalized.map((time) => time.text),
            character_start_times_seconds: cut.normalized.map((time) => seconds(time.startTicks)),
            character_end_times_seconds: cut.normalized.map((time) => seconds(time.endTicks)),
          },
    voiceSegments: cut.voices.map((voice) => ({
      voice_id: voice.voiceId,
      start_time_seconds: seconds(voice.startTicks),
      end_time_seconds: seconds(voice.endTicks),
      character_start_index: cut.characters.filter((time) => time.start < voice.start).length,
      character_end_index: cut.characters.filter((time) => time.start < voice.end).length,
      dialogue_input_index: voice.inputIndex - cut.inputsBefore,
    })),
  };
  return new ReplayAttempt({
    segment,
    sourceFormat,
    timing,
    wantsTiming: true,
    isLevelled: true,
    requestId: null,
    chunks: [chunk],
  });
}
