/** What the service and its voice workers say to each other of a job. Everything here crosses a thread: plain data only. */
import type { Alignment, VoiceSegment } from "../../timing/alignment.ts";
import type { Normalization } from "../text/normalizer.ts";
import type { Respelling } from "../text/pronunciation.ts";
import type { TimbreSettings } from "./audio/timbre.ts";
import type { EngineAudio, EnginePiece } from "./neural/speech-engine.ts";
import type { Neighbours } from "./plan/stitched-text.ts";

/** What a voice worker has from its start. */
export interface VoiceWorkerData {
  readonly warmsUp: boolean;
}

/** One text for one voice; a dialogue has several. */
export interface JobInput {
  readonly text: string;
  readonly voiceId: string;
  /** ISO 639-1 code of the language to speak, or null for the voice's own. */
  readonly languageCode: string | null;
  /** The engine's voice of a region of that language. Absent: the voice's own accent in its own language. */
  readonly accent?: string;
  /** Stretches of the text that pronunciation dictionaries say otherwise, in order. */
  readonly respellings?: readonly Respelling[];
  /** The voice of the catalogue that speaks for a voice that was added, and the engine's pitch, 0-100. */
  readonly sound?: { readonly base: string; readonly pitch: number };
  /** Who speaks a model's voice in place of the embedded engine. */
  readonly neural?: NeuralSpeaker;
}

export interface NeuralSpeaker extends Pick<EnginePiece, "model" | "speaker"> {
  /** As clients name it; null: the model does not say what it speaks. */
  readonly language: string | null;
}

export interface JobSpec {
  readonly inputs: readonly JobInput[];
  /** What other requests say before the first input and after the last one. Absent: nothing is known of them. */
  readonly neighbours?: Neighbours | undefined;
  /** One of OUTPUT_FORMATS. */
  readonly format: string;
  readonly wantsTiming: boolean;
  /** Adds the engine's own word events to the timing. */
  readonly wantsTruth: boolean;
  readonly normalization: Normalization;
  /** Japanese text is read in kana. */
  readonly readsJapanese: boolean;
  /** `[laughs]` and the like are directions, not text. */
  readonly audioTags: boolean;
  /** 0.7-1.2. */
  readonly speed: number;
  /** 0-1: low moves the pitch more. */
  readonly stability: number;
  /** 0-1: high moves the pitch more. */
  readonly style: number;
  /** 0-4, see latency.ts. Absent: 0. */
  readonly latencyLevel?: number | undefined;
  /** See timbre.ts. */
  readonly timbre?: TimbreSettings;
  /** 0-4294967295: one of many slightly different ways to say it (variation.ts), the same samples each time. Absent: the plain one. */
  readonly seed?: number | undefined;
  /** The plain way, and yet the same samples each time. */
  readonly isRepeatable?: boolean;
  /** So long its client has something else to play, ms. Absent: it waits for the first frame. */
  readonly aheadMs?: number | undefined;
}

/** The usual way to say nothing yet: PCM alone. */
export const PLAIN_JOB: JobSpec = {
  inputs: [],
  format: "pcm_24000",
  wantsTiming: false,
  wantsTruth: false,
  normalization: "off",
  readsJapanese: false,
  audioTags: false,
  speed: 1,
  stability: 0.5,
  style: 0,
};

/** A word event as the engine gave it, on the response's timeline. */
export interface TruthWord {
  /** Index into the characters of `normalized_alignment`, whole response. */
  readonly normalized_character_index: number;
  /** Index into the characters of `alignment`, whole response. */
  readonly character_index: number;
  readonly length: number;
  readonly start_time_seconds: number;
}

export interface ChunkTiming {
  /** Null where the chunk is only a part of a long word's audio, or the encoder's rest. */
  readonly alignment: Alignment | null;
  readonly normalizedAlignment: Alignment | null;
  readonly voiceSegments: readonly VoiceSegment[];
  readonly truth: readonly TruthWord[];
  /** The alignment before a scripted fault changed it; only where one may have, and truth is wanted. */
  readonly trueAlignment?: Alignment | null;
}

export interface JobChunk {
  readonly audio: Uint8Array<ArrayBuffer>;
  /** Null where the job wants no timing. */
  readonly timing: ChunkTiming | null;
  /** How late its thread was then with what is played, ms; the job's first chunk has it. */
  readonly behindMs?: number;
}

export type ToWorker =
  | {
      readonly type: "open";
      readonly spec: JobSpec;
      /** One Int32: 1 once the job is cancelled; read in the middle of a synthesis. */
      readonly cancelled: SharedArrayBuffer;
    }
  /** So many bytes have left for the client: that much more may be made. */
  | { readonly type: "ack"; readonly bytes: number }
  /** What the job has asked the neural engine for. */
  | ({ readonly type: "spoken" } & EngineAudio)
  | { readonly type: "cancel" };

export type FromWorker =
  | { readonly type: "chunk"; readonly chunk: JobChunk }
  /** For the neural engine; the job waits for it. */
  | { readonly type: "ask"; readonly piece: EnginePiece }
  /** The job is over and holds nothing any more. */
  | {
      readonly type: "ended";
      readonly outcome: "done" | "cancelled" | "failed";
      readonly message: string;
      /** What the engine made, used or not. */
      readonly synthesizedMs: number;
    };
