/** An Opus encoder in this thread; the gateway's renditions use those of an OpusPool instead. */
import { GatewayError } from "../../errors.ts";
import { attemptOpus, OpusCodec, type OpusRate, RESET_STATE } from "./opus-codec.ts";
import { bytesOf } from "./pcm.ts";

/** opus_defines.h: OPUS_SET_COMPLEXITY. */
const SET_COMPLEXITY = 4010;

export interface OpusEncoderOptions {
  readonly sampleRate: OpusRate;
  readonly bitrateKbps: number;
  /** 0 (fastest) - 10 (best). */
  readonly complexity: number;
}

export class OpusEncoder {
  readonly sampleRate: OpusRate;
  readonly #codec: OpusCodec;

  /** Throws GatewayError "encoder_failed" when as many codecs are live in this thread as may be. */
  constructor(options: OpusEncoderOptions) {
    this.sampleRate = options.sampleRate;
    this.#codec = new OpusCodec(options.sampleRate);
    try {
      attemptOpus("set up an Opus encoder", () => {
        this.#codec.opus.setBitrate(options.bitrateKbps * 1000);
        this.#codec.opus.encoderCTL(SET_COMPLEXITY, options.complexity);
      });
    } catch (error) {
      this.#codec.close();
      throw error;
    }
  }

  /** One packet from exactly one frame of 2.5-60 ms. */
  encode(frame: Int16Array): Uint8Array {
    const bytes = bytesOf(frame);
    const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const packet = attemptOpus("encode Opus", () => this.#codec.opus.encode(buffer, frame.length));
    if (packet.length === 0) {
      throw new GatewayError("encoder_failed", "Cannot encode Opus: the packet is empty, expected bytes");
    }
    // Out of Node's shared pool, so that it can be handed to another thread.
    return new Uint8Array(packet);
  }

  /** As if nothing had been encoded: equal input gives equal packets again. */
  reset(): void {
    this.#codec.opus.encoderCTL(RESET_STATE, 0);
  }

  close(): void {
    this.#codec.close();
  }
}
