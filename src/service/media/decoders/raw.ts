/** Headerless 16-bit little-endian mono PCM at 16 kHz: what `pcm_s16le_16` stands for. */
import { PcmAligner } from "../../../audio/codecs/pcm.ts";
import type { PcmPiece } from "../pieces.ts";
import { invalidAudio, type UploadDecoder } from "./decoder.ts";

const SAMPLE_RATE = 16_000;
const BYTES_PER_SAMPLE = 2;

/** Throws ApiError `invalid_audio` for half a sample at the end: the bytes are of another kind, or were cut. */
export function requireWholeSamples(bytes: number): void {
  const extra = bytes % BYTES_PER_SAMPLE;
  if (extra === 0) return;
  throw invalidAudio(
    `a sample of raw PCM has ${BYTES_PER_SAMPLE} bytes, and ${extra} byte at its end is too many`,
  );
}

export class RawDecoder implements UploadDecoder {
  readonly #aligner = new PcmAligner();

  async push(bytes: Uint8Array): Promise<readonly PcmPiece[]> {
    return [{ pcm: this.#aligner.push(bytes), sampleRate: SAMPLE_RATE }];
  }

  async finish(): Promise<readonly PcmPiece[]> {
    requireWholeSamples(this.#aligner.pendingBytes);
    return [];
  }

  close(): void {
    this.#aligner.reset();
  }
}
