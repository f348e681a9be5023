/** What the service and a converter thread say to each other of a job. Everything here crosses a thread: plain data only. */
import type { VoiceProfile } from "./voice-profile.ts";

/** Bytes made that have not left for the client; above it no more samples are taken. */
export const MAX_UNSENT_BYTES = 262_144;

/** A thread does one at a time. */
export type ConverterTask =
  | {
      readonly kind: "convert";
      readonly target: VoiceProfile;
      /** One of OUTPUT_FORMATS, without `wav_`. */
      readonly format: string;
      readonly removesNoise: boolean;
      /** The serial number of an Ogg stream, see createStreamEncoder. */
      readonly seed?: number | undefined;
    }
  | { readonly kind: "measure"; readonly removesNoise: boolean };

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
