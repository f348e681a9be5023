/** What the service and a denoising worker say to each other of a job: a file in, MP3 out, both by request. */
import type { FileFormat } from "./decode-upload.ts";

export interface DenoiseSpec {
  readonly fileFormat: FileFormat;
}

/** Known when all is encoded. */
export interface Denoised {
  /** Container of the file that was sent: wav, aiff, mp3, flac, ogg, matroska, mp4, pcm. */
  readonly format: string;
  /** At 44.1 kHz. */
  readonly samples: number;
  readonly frames: number;
  readonly bytes: number;
}

/** An ApiError's parts: its class does not cross a thread. */
export interface DenoiseError {
  readonly type: string;
  readonly code: string;
  readonly message: string;
}

export type ToDenoiser =
  | { readonly type: "open"; readonly spec: DenoiseSpec }
  /** An answer to `more`. */
  | { readonly type: "piece"; readonly bytes: Uint8Array<ArrayBuffer> }
  | { readonly type: "end" }
  /** So many bytes have left: as many more may be made. */
  | { readonly type: "ack"; readonly bytes: number };

export type FromDenoiser =
  /** The next piece of the file is wanted. */
  | { readonly type: "more" }
  | { readonly type: "chunk"; readonly bytes: Uint8Array<ArrayBuffer> }
  | { readonly type: "done"; readonly result: Denoised }
  | { readonly type: "refused"; readonly error: DenoiseError }
  | { readonly type: "failed"; readonly message: string };
