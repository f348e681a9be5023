/** Headerless 16-bit little-endian mono PCM at 16 kHz: what `pcm_s16le_16` stands for. */
import { PcmAligner } from "../../../audio/codecs/pcm.ts";
import type { PcmPiece } from "../pieces.ts";
import type { UploadDecoder } from "./decoder.ts";

const SAMPLE_RATE = 16_000;

export class RawDecoder implements UploadDecoder {
  readonly #aligner = new PcmAligner();

  async push(bytes: Uint8Array): Promise<readonly PcmPiece[]> {
    return [{ pcm: this.#aligner.push(bytes), sampleRate: SAMPLE_RATE }];
  }

  /** Half a sample at the end is dropped. */
  async finish(): Promise<readonly PcmPiece[]> {
    return [];
  }

  close(): void {
    this.#aligner.reset();
  }
}
