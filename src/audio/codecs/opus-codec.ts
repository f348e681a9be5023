/**
 * The one file that touches opusscript: mono Opus in this thread.
 *
 * Two faults of opusscript 0.1.1 are dealt with here. Its WebAssembly heap may not grow, because every codec made
 * before then holds views of the old memory and throws from then on: hence the bound on live codecs. And it uses a
 * byte address as an index of 16-bit cells, so that the samples' buffers lie at twice the address that was
 * allocated, inside memory that belongs to other codecs: hence the move to the heap's end, which no allocation
 * reaches under the bound.
 */
import OpusScript from "opusscript";
import { GatewayError } from "../../errors.ts";

export const OPUS_RATES = [8000, 12000, 16000, 24000, 48000] as const;
export type OpusRate = (typeof OPUS_RATES)[number];

/**
 * Measured: a codec takes 104 KB of a heap of 16 MB. 60 of them end below 6.4 MB; from about 150 on the heap grows.
 */
export const MAX_LIVE_CODECS = 60;

/** opus_defines.h: OPUS_RESET_STATE, for encoders and decoders alike. */
export const RESET_STATE = 4028;
/** 60 ms at 48 kHz, the most that opusscript decodes; each byte of PCM takes a 16-bit cell. */
const SCRATCH_CELLS = 2880 * 2;
/** The encoder reads twice as far as the samples go (measured: at the very end of the heap it traps). */
const SCRATCH_BYTES = SCRATCH_CELLS * 2 * 2;

/** Fields of opusscript's object that its types leave out. */
interface Internals {
  readonly inOpus: Uint8Array;
  inPCM: Uint16Array;
  outPCM: Uint16Array;
}

/** Live codecs of this thread. The heap they share is one per thread too, so that this count has to be. */
const live = { count: 0 };

/** An opusscript object (encoder and decoder in one) with a place under the bound, given back by `close`. */
export class OpusCodec {
  readonly opus: OpusScript;
  #isClosed = false;

  constructor(sampleRate: OpusRate) {
    if (live.count >= MAX_LIVE_CODECS) {
      throw new GatewayError(
        "encoder_failed",
        `Cannot open an Opus codec: ${live.count} are open in this thread, expected fewer than ${MAX_LIVE_CODECS}`,
      );
    }
    this.opus = attemptOpus("open an Opus codec", () => {
      return new OpusScript(sampleRate, 1, OpusScript.Application.AUDIO);
    });
    live.count += 1;
    const internals = this.opus as unknown as Internals;
    const heap = internals.inOpus.buffer;
    const scratch = new Uint16Array(heap, heap.byteLength - SCRATCH_BYTES, SCRATCH_CELLS);
    internals.inPCM = scratch;
    internals.outPCM = scratch;
  }

  /** Idempotent. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    live.count -= 1;
    this.opus.delete();
  }
}

/** Runs a call into opusscript; what it throws becomes a GatewayError. */
export function attemptOpus<T>(what: string, action: () => T): T {
  try {
    return action();
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new GatewayError("encoder_failed", `Cannot ${what}: ${reason}`, { cause });
  }
}
