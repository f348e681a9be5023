/** Frames of G.711 and PCM: synchronous, bit-exact where bytes are passed through. */
import type { AudioFormat } from "../../protocol/vocabulary.ts";
import { silenceBytes } from "../analysis/silence.ts";
import { encodeSamples, type SampleCodec } from "../codecs/samples.ts";
import { AUDIO_FORMATS, frameSamples } from "../formats.ts";
import { RateConverter } from "../resample/rate-converter.ts";
import type { FrameHandlers, FrameMaker } from "./frames.ts";

/** Bytes of silence made at once, so that a long gap is cut from one small buffer. */
const SILENCE_BYTES = 8192;

export class SampleFrameMaker implements FrameMaker {
  readonly #codec: SampleCodec;
  /** Repeated, it is silence in the codec. */
  readonly #silence: number;
  readonly #bytesPerSample: number;
  readonly #reframer: Reframer;
  readonly #converter: RateConverter;
  readonly #emit: (frames: Uint8Array) => void;
  #framesEmitted = 0;
  #isClosed = false;

  constructor(
    options: { readonly format: Exclude<AudioFormat, "opus_48000">; readonly frameMs: number },
    handlers: Pick<FrameHandlers, "frames">,
  ) {
    const { codec, sampleRate, bytesPerSample } = AUDIO_FORMATS[options.format];
    if (codec === "opus")
      throw new TypeError(`Cannot cut ${options.format} by samples: its packets vary in size`);
    this.#codec = codec === "pcm_s16le" ? "pcm" : codec;
    this.#silence = silenceBytes(this.#codec, 1)[0] ?? 0;
    this.#bytesPerSample = bytesPerSample ?? 1;
    const frameBytes = frameSamples(options.format, options.frameMs) * this.#bytesPerSample;
    this.#reframer = new Reframer({ frameBytes, padByte: this.#silence });
    this.#converter = new RateConverter(sampleRate);
    this.#emit = (frames) => {
      if (this.#isClosed) return;
      this.#framesEmitted += frames.byteLength / frameBytes;
      handlers.frames(frames, frameBytes);
    };
  }

  get framesPromised(): number {
    return this.#framesEmitted;
  }

  pushPcm(pcm: Int16Array, rate: number): void {
    for (const converted of this.#converter.push(pcm, rate)) this.#pushSamples(converted);
  }

  pushPassThrough(bytes: Uint8Array): void {
    this.#flushResampler();
    this.#reframer.push(bytes, this.#emit);
  }

  pushSilence(samples: number): void {
    this.#flushResampler();
    let bytes = samples * this.#bytesPerSample;
    const silence = new Uint8Array(Math.min(bytes, SILENCE_BYTES)).fill(this.#silence);
    for (; bytes > 0; bytes -= silence.length) this.#reframer.push(silence.subarray(0, bytes), this.#emit);
  }

  flush(): number {
    this.#flushResampler();
    return this.#reframer.flush(this.#emit) / this.#bytesPerSample;
  }

  reset(): void {
    this.#converter.reset();
    this.#reframer.reset();
  }

  releaseEncoder(): void {
    // Nothing here is scarce.
  }

  close(): void {
    this.#isClosed = true;
    this.reset();
  }

  /** What is still in the resampler comes before whatever is pushed next. */
  #flushResampler(): void {
    this.#pushSamples(this.#converter.flush());
  }

  #pushSamples(pcm: Int16Array): void {
    if (pcm.length > 0) this.#reframer.push(encodeSamples(this.#codec, pcm), this.#emit);
  }
}

interface ReframerOptions {
  /** Size of each frame. */
  readonly frameBytes: number;
  /** Fills up the last frame: the codec's silence. */
  readonly padByte: number;
}

/** Cuts a stream of bytes into frames of one exact size, whatever the sizes it comes in. */
export class Reframer {
  readonly #frameBytes: number;
  readonly #padByte: number;
  /** The start of a frame whose rest has not come; a fresh one a frame, since receivers may keep what they get. */
  #partial: Uint8Array | null = null;
  #filled = 0;

  constructor(options: ReframerOptions) {
    if (!Number.isInteger(options.frameBytes) || options.frameBytes < 1) {
      throw new RangeError(`Cannot cut frames: frameBytes is ${options.frameBytes}, expected 1 or more`);
    }
    this.#frameBytes = options.frameBytes;
    this.#padByte = options.padByte;
  }

  get pendingBytes(): number {
    return this.#filled;
  }

  /** Emits what is complete, whole frames in a row: a view of `chunk` where they lie inside it, otherwise a copy. */
  push(chunk: Uint8Array, emit: (frames: Uint8Array) => void): void {
    let at = 0;
    if (this.#filled > 0) {
      at = this.#fill(chunk, 0);
      if (this.#filled === this.#frameBytes) this.#emitPartial(emit);
    }
    const end = chunk.length - ((chunk.length - at) % this.#frameBytes);
    if (end > at) emit(at === 0 && end === chunk.length ? chunk : chunk.subarray(at, end));
    if (end < chunk.length) this.#fill(chunk, end);
  }

  /** Pads and emits the last frame; returns how many bytes of it are padding, 0 if nothing was pending. */
  flush(emit: (frames: Uint8Array) => void): number {
    if (this.#partial === null) return 0;
    const padded = this.#frameBytes - this.#filled;
    this.#partial.fill(this.#padByte, this.#filled);
    this.#emitPartial(emit);
    return padded;
  }

  /** Forgets the frame that is half made. */
  reset(): void {
    this.#partial = null;
    this.#filled = 0;
  }

  /** Copies from `chunk` at `at` into the partial frame; returns the place behind what was taken. */
  #fill(chunk: Uint8Array, at: number): number {
    this.#partial ??= new Uint8Array(this.#frameBytes);
    const end = Math.min(chunk.length, at + this.#frameBytes - this.#filled);
    this.#partial.set(chunk.subarray(at, end), this.#filled);
    this.#filled += end - at;
    return end;
  }

  #emitPartial(emit: (frames: Uint8Array) => void): void {
    const frame = this.#partial;
    this.reset();
    if (frame !== null) emit(frame);
  }
}
