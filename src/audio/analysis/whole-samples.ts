/** The samples of G.711 or PCM that comes in pieces cut anywhere: half a sample waits for the rest of it. */

import { bytesOf, PcmAligner } from "../codecs/pcm.ts";
import { bytesPerSample, type SampleCodec } from "../codecs/samples.ts";

export class WholeSamples {
  readonly codec: SampleCodec;
  /** null = a sample is a byte. */
  readonly #aligner: PcmAligner | null;
  #bytes = 0;

  constructor(codec: SampleCodec) {
    this.codec = codec;
    this.#aligner = bytesPerSample(codec) === 2 ? new PcmAligner() : null;
  }

  /** Audio that nobody asks about. A sample that is skipped by half is skipped. */
  skip(audio: Uint8Array): void {
    this.#bytes += audio.length;
    if (audio.length > 0) this.#aligner?.reset();
  }

  /**
   * The samples that this audio completes, which comes behind all before. `first`: number of the first one from the start
   * of the audio, what was skipped included. `bytes`: a view of `audio`, or a copy.
   */
  push(audio: Uint8Array): { readonly first: number; readonly bytes: Uint8Array } {
    const from = this.#bytes;
    this.#bytes += audio.length;
    const aligner = this.#aligner;
    if (aligner === null) return { first: from, bytes: audio };
    const start = from - aligner.pendingBytes;
    const skipped = start % 2;
    return { first: (start + skipped) / 2, bytes: bytesOf(aligner.push(audio.subarray(skipped))) };
  }
}
