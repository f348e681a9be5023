/** Samples at 48 kHz -> an Ogg Opus stream of 20 ms packets, encoded in this thread. */
import { concatBytes } from "../bytes.ts";
import { OpusEncoder } from "../codecs/opus-encoder.ts";
import { OPUS_LOOKAHEAD_48K } from "../codecs/opus-lookahead.ts";
import { OggOpusWriter } from "./ogg.ts";

const SAMPLE_RATE = 48000;
const FRAME_SAMPLES = 960;
/** Half way: 10 costs twice the time for a difference that speech at these bit rates does not show. */
const COMPLEXITY = 5;

export class OggOpusEncoder {
  readonly #encoder: OpusEncoder;
  readonly #writer: OggOpusWriter;
  readonly #frame = new Int16Array(FRAME_SAMPLES);
  #filled = 0;
  #samplesIn = 0;
  #packets = 0;
  #isHeaderSent = false;

  /** Throws GatewayError "encoder_failed" where as many codecs are open in this thread as may be. */
  constructor(options: { readonly bitrateKbps: number; readonly serial?: number | undefined }) {
    const { bitrateKbps, serial } = options;
    this.#writer = new OggOpusWriter({ serial, preSkip: OPUS_LOOKAHEAD_48K });
    this.#encoder = new OpusEncoder({ sampleRate: SAMPLE_RATE, bitrateKbps, complexity: COMPLEXITY });
  }

  /** Pages that are due; the stream's header comes with the first call. */
  push(pcm: Int16Array): Uint8Array {
    const pages: Uint8Array[] = this.#takeHeader();
    this.#samplesIn += pcm.length;
    for (let at = 0; at < pcm.length; ) {
      const piece = pcm.subarray(at, at + FRAME_SAMPLES - this.#filled);
      this.#frame.set(piece, this.#filled);
      this.#filled += piece.length;
      at += piece.length;
      if (this.#filled === FRAME_SAMPLES) pages.push(this.#encodeFrame());
    }
    return concatBytes(pages);
  }

  /**
   * The rest: silence follows until the encoder has given out every sample that went in, and the last page says how
   * much of that players must cut off again.
   */
  flush(): Uint8Array {
    const pages: Uint8Array[] = this.#takeHeader();
    const due = this.#samplesIn + OPUS_LOOKAHEAD_48K;
    while (this.#packets * FRAME_SAMPLES < due) {
      this.#frame.fill(0, this.#filled);
      pages.push(this.#encodeFrame({ isLast: (this.#packets + 1) * FRAME_SAMPLES >= due }));
    }
    pages.push(this.#writer.finish(this.#samplesIn));
    return concatBytes(pages);
  }

  /** Idempotent. */
  close(): void {
    this.#encoder.close();
  }

  #takeHeader(): Uint8Array[] {
    if (this.#isHeaderSent) return [];
    this.#isHeaderSent = true;
    return [this.#writer.header()];
  }

  #encodeFrame(options: { isLast?: boolean } = {}): Uint8Array {
    this.#filled = 0;
    this.#packets += 1;
    return this.#writer.push(this.#encoder.encode(this.#frame), FRAME_SAMPLES, options);
  }
}
