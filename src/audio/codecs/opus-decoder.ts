/** An Opus decoder in this thread, for packets that must be transcoded. */
import { attemptOpus, OpusCodec, RESET_STATE } from "./opus-codec.ts";
import { bytesOf } from "./pcm.ts";

export interface OpusDecoder {
  /** The samples of one packet at 48 kHz; a fault in it is GatewayError "encoder_failed". */
  decode(packet: Uint8Array): Int16Array;
  reset(): void;
  /** Idempotent. */
  close(): void;
}

/**
 * A decoder to mono at 48 kHz, in this thread. Encoders and decoders share the thread's bound: throws GatewayError
 * "encoder_failed" when it is reached.
 */
export function createOpusDecoder(): OpusDecoder {
  const codec = new OpusCodec(48000);
  return {
    decode(packet) {
      const buffer = Buffer.from(packet.buffer, packet.byteOffset, packet.byteLength);
      const decoded = attemptOpus("decode Opus", () => codec.opus.decode(buffer));
      const samples = new Int16Array(decoded.length >> 1);
      bytesOf(samples).set(decoded);
      return samples;
    },
    reset: () => codec.opus.decoderCTL(RESET_STATE, 0),
    close: () => codec.close(),
  };
}
