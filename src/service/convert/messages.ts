/** What the service and a converter thread say to each other of a job. Everything here crosses a thread: plain data only. */
import type { TimbreSettings } from "../voice/audio/timbre.ts";
import type { VoiceProfile } from "./voice-profile.ts";

/** Bytes made that have not left for the client; above it no more samples are taken. */
export const MAX_UNSENT_BYTES = 262_144;

/** How a conversion speaks; as the recording where absent. */
export interface Manner {
  /** The pitch's distance from its middle by the recording's, in octaves; 1 keeps the recording's. */
  readonly melody: number;
  /** 0.7-1.2; 1 keeps the recording's length. */
  readonly speed: number;
  readonly timbre: TimbreSettings;
}

/** A thread does one at a time. */
export interface ConvertTask {
  readonly kind: "convert";
  readonly target: VoiceProfile;
  /** One of OUTPUT_FORMATS, without `wav_`. */
  readonly format: string;
  readonly removesNoise: boolean;
  /** Chooses the level (voice/engine/variation.ts), and the serial number of an Ogg stream. */
  readonly seed?: number | undefined;
  readonly manner?: Manner | undefined;
  /** 0-4, see voice/latency.ts. */
  readonly latencyLevel?: number | undefined;
}

export type ConverterTask = ConvertTask | { readonly kind: "measure"; readonly removesNoise: boolean };

export type ToConverter =
  | { readonly type: "open"; readonly task: ConverterTask }
  | { readonly type: "samples"; readonly pcm: Int16Array<ArrayBuffer>; readonly sampleRate: number }
  | { readonly type: "end" }
  /** So many bytes have left for the client. */
  | { readonly type: "ack"; readonly bytes: number };

export type FromConverter =
  /** One `samples` message is worked off, and what it made is within bounds: the next may come. */
  | { readonly type: "taken" }
  | { readonly type: "chunk"; readonly bytes: Uint8Array<ArrayBuffer> }
  | { readonly type: "done" }
  | { readonly type: "measured"; readonly profile: VoiceProfile | null }
  | { readonly type: "failed"; readonly message: string };
