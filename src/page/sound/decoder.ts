/**
 * Bare Opus packets (RFC 6716, one a message) to samples: the browser's own decoder where there is one, libopus as
 * WebAssembly where there is none (no WebCodecs, no secure context) or where it fails.
 */
import { OpusDecoder } from "opus-decoder";
import { SAMPLE_RATE } from "./audio-out.ts";

export type DecoderKind = "webcodecs" | "wasm";

export interface DecodedBlock {
  readonly samples: Float32Array<ArrayBuffer>;
  /** Timeline position of its packet, ms. */
  readonly atMs: number;
}

export interface DecoderHandlers {
  /** Blocks come in the order of their packets. */
  block(block: DecodedBlock): void;
  /** This decoder is of no use any more. */
  failed(error: unknown): void;
}

export interface Decoder {
  readonly kind: DecoderKind;
  decode(packet: Uint8Array, atMs: number): void;
  /** Forgets what is under way: no block of an earlier packet comes any more. */
  reset(): void;
  close(): void;
}

const OPUS = { codec: "opus", sampleRate: SAMPLE_RATE, numberOfChannels: 1 } as const;

/** Whether this browser decodes Opus itself. */
async function hasWebCodecs(): Promise<boolean> {
  if (!("AudioDecoder" in globalThis)) return false;
  try {
    return (await AudioDecoder.isConfigSupported(OPUS)).supported === true;
  } catch {
    return false;
  }
}

/** The decoder of choice; `isWasmForced` for tests and for browsers whose own one misbehaves. */
export async function openDecoder(isWasmForced: boolean, handlers: DecoderHandlers): Promise<Decoder> {
  if (!isWasmForced && (await hasWebCodecs())) return new WebCodecsDecoder(handlers);
  const wasm = new OpusDecoder({ channels: 1 });
  await wasm.ready;
  return new WasmDecoder(wasm, handlers);
}

class WebCodecsDecoder implements Decoder {
  readonly kind = "webcodecs";
  readonly #handlers: DecoderHandlers;
  readonly #decoder: AudioDecoder;
  /**
   * Positions of the packets under way, one a block: Chrome counts the timestamps of its output on from the first
   * packet and so loses every gap.
   */
  #positions: number[] = [];

  constructor(handlers: DecoderHandlers) {
    this.#handlers = handlers;
    this.#decoder = new AudioDecoder({
      output: (data) => this.#decoderOnOutput(data),
      error: (error) => handlers.failed(error),
    });
    this.#decoder.configure(OPUS);
  }

  decode(packet: Uint8Array, atMs: number): void {
    if (this.#decoder.state !== "configured") return;
    this.#positions.push(atMs);
    const data = packet as Uint8Array<ArrayBuffer>;
    this.#decoder.decode(new EncodedAudioChunk({ type: "key", timestamp: Math.round(atMs * 1000), data }));
  }

  reset(): void {
    this.#positions = [];
    if (this.#decoder.state !== "configured") return;
    this.#decoder.reset();
    this.#decoder.configure(OPUS);
  }

  close(): void {
    if (this.#decoder.state !== "closed") this.#decoder.close();
  }

  #decoderOnOutput(data: AudioData): void {
    const samples = new Float32Array(data.numberOfFrames);
    data.copyTo(samples, { planeIndex: 0, format: "f32-planar" });
    data.close();
    const atMs = this.#positions.shift();
    if (atMs !== undefined) this.#handlers.block({ samples, atMs });
  }
}

class WasmDecoder implements Decoder {
  readonly kind = "wasm";
  readonly #handlers: DecoderHandlers;
  readonly #decoder: OpusDecoder;

  constructor(decoder: OpusDecoder, handlers: DecoderHandlers) {
    this.#decoder = decoder;
    this.#handlers = handlers;
  }

  decode(packet: Uint8Array, atMs: number): void {
    const { channelData, samplesDecoded } = this.#decoder.decodeFrame(packet);
    const channel = channelData[0];
    // A copy: the decoder's own memory is written over by the next packet.
    if (channel !== undefined)
      this.#handlers.block({ samples: new Float32Array(channel.subarray(0, samplesDecoded)), atMs });
  }

  reset(): void {
    // Nothing is under way: each packet is decoded at once.
  }

  close(): void {
    this.#decoder.free();
  }
}
