/** WAV (RIFF/WAVE) headers of 16-bit mono PCM: written in front of samples, and taken off again. */
import { concatBytes } from "../bytes.ts";

/**
 * Length of a stream whose end is not known when its header is sent. Players (ffmpeg, sox, browsers) take a length of
 * all ones as "until the end"; a length of 0 makes some of them play nothing.
 */
export const UNKNOWN_DATA_BYTES = 0xffffffff;

export const WAV_HEADER_BYTES = 44;
const MAX_SIZE = 0xffffffff;
const PCM_TAG = 1;
/** WAVE_FORMAT_EXTENSIBLE: the tag itself stands further back, as the start of a GUID. */
const EXTENSIBLE_TAG = 0xfffe;
const FMT_BYTES = 16;

/** The 44 bytes in front of `dataBytes` of PCM; UNKNOWN_DATA_BYTES for a stream. */
export function wavHeader(options: { readonly sampleRate: number; readonly dataBytes: number }): Uint8Array {
  const { sampleRate, dataBytes } = options;
  const header = new Uint8Array(WAV_HEADER_BYTES);
  const fields = new DataView(header.buffer);
  const text = new TextEncoder();
  header.set(text.encode("RIFF"), 0);
  fields.setUint32(4, Math.min(dataBytes + WAV_HEADER_BYTES - 8, MAX_SIZE), true);
  header.set(text.encode("WAVEfmt "), 8);
  fields.setUint32(16, FMT_BYTES, true);
  fields.setUint16(20, PCM_TAG, true);
  fields.setUint16(22, 1, true);
  fields.setUint32(24, sampleRate, true);
  fields.setUint32(28, sampleRate * 2, true);
  fields.setUint16(32, 2, true);
  fields.setUint16(34, 16, true);
  header.set(text.encode("data"), 36);
  fields.setUint32(40, Math.min(dataBytes, MAX_SIZE), true);
  return header;
}

/** What a header said. */
export interface WavFormat {
  /** Whether the samples are integers (PCM). */
  readonly isPcm: boolean;
  readonly channels: number;
  readonly sampleRate: number;
  readonly bitsPerSample: number;
}

type State =
  /** Nothing is decided: fewer than 12 bytes, and they could be a header's. */
  | { readonly kind: "start" }
  /** Between chunks of a header: the next 8 bytes name one. */
  | { readonly kind: "chunk" }
  /** Inside `fmt `, whose first 16 bytes are read, or any other chunk, of which `left` bytes are skipped. */
  | { readonly kind: "format"; readonly bytes: number }
  | { readonly kind: "skip"; readonly left: number }
  /** Inside the samples. */
  | { readonly kind: "data"; readonly left: number };

const NO_BYTES = new Uint8Array(0);

/** Takes a RIFF header, and chunks behind the samples, off a stream of PCM; a stream without a header passes. */
export class WavStripper {
  #state: State = { kind: "start" };
  /** Bytes of the header that mean something only together with the next ones: fewer than 16. */
  #held: Uint8Array = NO_BYTES;
  #format: WavFormat | null = null;

  /** What the header said; null where there is none, or it has not come yet. */
  get format(): WavFormat | null {
    return this.#format;
  }

  /** Whether the stream stands in the middle of a header. */
  get isInsideHeader(): boolean {
    return this.#state.kind === "chunk" || this.#state.kind === "format";
  }

  /** The samples' bytes so far: a view of `chunk` unless bytes were held back. */
  push(chunk: Uint8Array): Uint8Array {
    if (this.#state.kind === "data" && this.#state.left === Number.POSITIVE_INFINITY) return chunk;
    let bytes = this.#held.length === 0 ? chunk : concatBytes([this.#held, chunk]);
    this.#held = NO_BYTES;
    let audio: Uint8Array = NO_BYTES;
    while (bytes.length > 0) {
      const taken = this.#take(bytes);
      if (taken === 0) {
        this.#held = bytes.slice();
        break;
      }
      if (taken < 0) {
        audio = bytes.subarray(0, -taken);
        bytes = bytes.subarray(-taken);
      } else {
        bytes = bytes.subarray(taken);
      }
    }
    return audio;
  }

  /** The bytes that were held back in case a header followed. */
  flush(): Uint8Array {
    const held = this.#state.kind === "start" ? this.#held : NO_BYTES;
    this.#held = NO_BYTES;
    return held;
  }

  /** Bytes taken from the front: positive where they are no audio, negative where they are, 0 to wait for more. */
  #take(bytes: Uint8Array): number {
    switch (this.#state.kind) {
      case "start":
        return this.#takeStart(bytes);
      case "chunk":
        return bytes.length < 8 ? 0 : this.#takeChunkHead(bytes);
      case "format":
        return bytes.length < FMT_BYTES ? 0 : this.#takeFormat(bytes, this.#state.bytes);
      case "skip": {
        const taken = Math.min(bytes.length, this.#state.left);
        this.#skip(this.#state.left - taken);
        return taken;
      }
      case "data": {
        const taken = Math.min(bytes.length, this.#state.left);
        const left = this.#state.left - taken;
        // Chunks behind the samples (LIST, id3) are no audio.
        this.#state = left === 0 ? { kind: "skip", left: Number.POSITIVE_INFINITY } : { kind: "data", left };
        return -taken;
      }
    }
  }

  #takeStart(bytes: Uint8Array): number {
    if (!isText(bytes.subarray(0, 4), "RIFF") || !isText(bytes.subarray(8, 12), "WAVE")) {
      this.#state = { kind: "data", left: Number.POSITIVE_INFINITY };
      return -bytes.length;
    }
    if (bytes.length < 12) return 0;
    this.#state = { kind: "chunk" };
    return 12;
  }

  #takeChunkHead(bytes: Uint8Array): number {
    const size = new DataView(bytes.buffer, bytes.byteOffset).getUint32(4, true);
    const name = bytes.subarray(0, 4);
    if (isText(name, "data")) {
      // 0 is what encoders leave that could not go back and write the length.
      const isUnknown = size === UNKNOWN_DATA_BYTES || size === 0;
      this.#state = { kind: "data", left: isUnknown ? Number.POSITIVE_INFINITY : size };
    } else if (isText(name, "fmt ") && size >= FMT_BYTES) {
      this.#state = { kind: "format", bytes: size };
    } else {
      // Chunks begin at even places (RIFF).
      this.#skip(size + (size % 2));
    }
    return 8;
  }

  #takeFormat(bytes: Uint8Array, size: number): number {
    const fields = new DataView(bytes.buffer, bytes.byteOffset);
    const tag = fields.getUint16(0, true);
    this.#format = {
      isPcm: tag === PCM_TAG || tag === EXTENSIBLE_TAG,
      channels: fields.getUint16(2, true),
      sampleRate: fields.getUint32(4, true),
      bitsPerSample: fields.getUint16(14, true),
    };
    this.#skip(size + (size % 2) - FMT_BYTES);
    return FMT_BYTES;
  }

  #skip(left: number): void {
    this.#state = left === 0 ? { kind: "chunk" } : { kind: "skip", left };
  }
}

/** Whether bytes are the text as far as they go. */
function isText(bytes: Uint8Array, text: string): boolean {
  return bytes.every((byte, index) => byte === text.charCodeAt(index));
}
