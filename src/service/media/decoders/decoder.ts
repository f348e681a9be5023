/** What the decoders of uploaded files have in common, and the interface's words for what is wrong with one. */
import { ApiError } from "../../api-error.ts";
import type { PcmPiece } from "../pieces.ts";

export interface UploadDecoder {
  /** Throws ApiError `invalid_audio` for broken bytes; nothing can be pushed after that. */
  push(bytes: Uint8Array): Promise<readonly PcmPiece[]>;
  /** The bytes have ended: what is left. */
  finish(): Promise<readonly PcmPiece[]>;
  /** Idempotent. */
  close(): void;
}

/** Hz of the files that are taken. */
export const MIN_RATE = 4000;
export const MAX_RATE = 384_000;
export const MAX_CHANNELS = 32;
/** Tags, pictures and the like before the sound. They are passed over. */
export const MAX_TAGS_BYTES = 67_108_864;

/** In the words of an error. */
const ACCEPTED = "WAV, AIFF, MP3, FLAC, Ogg, WebM or Matroska (with Opus, Vorbis, FLAC, MP3 or PCM), or M4A";

/** The bytes are of no format that is known here. */
export function unknownFormat(reason: string): ApiError {
  return ApiError.of(unknownFormatDetail(reason));
}

function unknownFormatDetail(reason: string) {
  return {
    type: "validation_error",
    code: "invalid_audio_format",
    message: `The audio cannot be decoded: ${reason}. Expected ${ACCEPTED}.`,
    param: "audio",
  } as const;
}

/** A track that has no decoder here. Where the machine has ffmpeg, that decodes it. */
export class ForeignTrack extends ApiError {
  constructor(reason: string) {
    super(400, unknownFormatDetail(reason));
  }
}

/** The bytes begin as a known format and are broken. */
export function invalidAudio(reason: string): ApiError {
  return ApiError.of({
    type: "validation_error",
    code: "invalid_audio",
    message: `The audio cannot be decoded: ${reason}.`,
    param: "audio",
  });
}

export function audioTooLong(maxSeconds: number): ApiError {
  return ApiError.of({
    type: "validation_error",
    code: "audio_too_long",
    message: `The audio is longer than ${maxSeconds} seconds.`,
    param: "audio",
  });
}

/** Throws ApiError `invalid_audio_format` for a rate that no recording has. */
export function requireRate(sampleRate: number): number {
  if (sampleRate >= MIN_RATE && sampleRate <= MAX_RATE) return sampleRate;
  throw unknownFormat(`its sample rate is ${sampleRate} Hz, which is not from ${MIN_RATE} to ${MAX_RATE}`);
}
