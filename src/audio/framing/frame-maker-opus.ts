/**
 * Frames of Opus: samples are encoded by a pool's threads and come out later, packets that are passed through at
 * once; all in the order in which they were pushed. An encoder is held from the first sample to the flush.
 *
 * Samples are encoded at 24 kHz while no source has more (half the work of 48 kHz), at 48 kHz from the first one on
 * that does. Decoders play all of it at 48 kHz.
 */
import { GatewayError, toGatewayError } from "../../errors.ts";
import { QuietTail } from "../analysis/quiet-tail.ts";
import { OPUS_LOOKAHEAD_48K } from "../codecs/opus-lookahead.ts";
import { concealmentPacket, opusPacketSamples48k } from "../codecs/opus-packet.ts";
import type { OpusPool, OpusStream } from "../codecs/opus-pool.ts";
import { RateConverter } from "../resample/rate-converter.ts";
import { Resampler } from "../resample/resample.ts";
import type { FrameHandlers, FrameMaker } from "./frames.ts";
import { type Promised, PromisedFrames } from "./promised-frames.ts";

const CLOCK_RATE = 48000;
/** Silence encoded in one go, in frames. */
const SILENCE_FRAMES = 50;

type EncoderRate = 24000 | 48000;

/** An encoder, and the frames that wait for it, oldest first. */
interface Encoding {
  readonly stream: OpusStream;
  readonly waiting: Promised[];
}

export class OpusFrameMaker implements FrameMaker {
  readonly #frameMs: number;
  readonly #pool: OpusPool;
  readonly #handlers: FrameHandlers;
  #rate: EncoderRate = 24000;
  #converter = new RateConverter(24000);
  /** The start of a frame, at the encoder's rate. */
  #partial: Int16Array;
  #filled = 0;
  /** What the encoder has taken in and not given out: its lookahead. */
  #tail = tailAt(24000);
  /** Half samples at 24 kHz that silence, counted at 48 kHz, has left over. */
  #silenceCarry = 0;
  #current: Encoding | null = null;
  /** The current encoder, and retired ones whose last packets are still to come. */
  readonly #encodings = new Set<Encoding>();
  readonly #frames: PromisedFrames;
  #isFailing = false;
  #isClosed = false;

  constructor(options: { readonly frameMs: number; readonly opusPool: OpusPool }, handlers: FrameHandlers) {
    this.#frameMs = options.frameMs;
    this.#pool = options.opusPool;
    this.#handlers = handlers;
    this.#frames = new PromisedFrames((bytes) => handlers.frames(bytes, bytes.byteLength));
    this.#partial = new Int16Array((this.#rate * options.frameMs) / 1000);
  }

  get framesPromised(): number {
    return this.#frames.total;
  }

  pushPcm(pcm: Int16Array, rate: number): void {
    if (this.#isClosed) return;
    if (rate > 24000 && this.#rate === 24000) this.#useFullRate();
    for (const converted of this.#converter.push(pcm, rate)) this.#pushSamples(converted);
  }

  /** A frame that is half made is filled up with silence before it. */
  pushPassThrough(packet: Uint8Array): void {
    if (this.#isClosed) return;
    this.#flushResampler();
    this.#padPartial();
    const samples = opusPacketSamples48k(packet);
    if (samples !== this.#frameMs * 48) {
      const message = `Cannot pass Opus through: a packet has ${samples / 48} ms, expected ${this.#frameMs}`;
      this.#handlers.error(new GatewayError("upstream_protocol", message));
      return;
    }
    this.#tail.reset();
    for (const frame of this.#frames.add(1)) frame.bytes = packet;
    this.#frames.emitReady();
  }

  pushSilence(samples: number): void {
    if (this.#isClosed) return;
    this.#flushResampler();
    const atEncoder = (samples * this.#rate) / CLOCK_RATE + this.#silenceCarry;
    let left = Math.floor(atEncoder);
    this.#silenceCarry = atEncoder - left;
    const silence = new Int16Array(Math.min(left, this.#partial.length * SILENCE_FRAMES));
    for (; left > 0; left -= silence.length) this.#pushSamples(silence.subarray(0, left));
  }

  /**
   * Opus decoders give out what they get 6.5 ms late. If sound would stay behind in the encoder, to come out at the
   * beginning of whatever is said next, a frame of silence is added: the padding returned is then up to a frame and
   * 6.5 ms long.
   */
  flush(): number {
    if (this.#isClosed) return 0;
    this.#flushResampler();
    let padded = this.#padPartial();
    if (!this.#tail.isQuiet) {
      const frame = this.#partial.length;
      this.#pushSamples(new Int16Array(frame));
      padded += frame;
    }
    // Encoders are few: between utterances somebody else can use it.
    this.#retire();
    return (padded * CLOCK_RATE) / this.#rate;
  }

  reset(keptFrames = 0): void {
    this.#converter.reset();
    this.#filled = 0;
    this.#silenceCarry = 0;
    this.#tail.reset();
    this.#frames.cut(keptFrames);
    for (const encoding of this.#encodings) {
      const dropped = encoding.waiting.findIndex(({ isDropped }) => isDropped);
      if (dropped >= 0) encoding.waiting.length = dropped;
      if (encoding.waiting.length === 0) this.#release(encoding);
    }
    this.#current = null;
  }

  releaseEncoder(): void {
    this.#retire();
  }

  close(): void {
    if (this.#isClosed) return;
    this.reset();
    this.#isClosed = true;
    for (const encoding of this.#encodings) this.#release(encoding);
    this.#current = null;
  }

  #flushResampler(): void {
    this.#pushSamples(this.#converter.flush());
  }

  /** Returns how many samples of silence fill up the frame that is half made. */
  #padPartial(): number {
    this.#silenceCarry = 0;
    if (this.#filled === 0) return 0;
    const padded = this.#partial.length - this.#filled;
    this.#pushSamples(new Int16Array(padded));
    return padded;
  }

  #pushSamples(pcm: Int16Array): void {
    if (pcm.length === 0) return;
    this.#tail.push(pcm);
    const frame = this.#partial.length;
    let at = 0;
    if (this.#filled > 0) {
      at = Math.min(pcm.length, frame - this.#filled);
      this.#partial.set(pcm.subarray(0, at), this.#filled);
      this.#filled += at;
      if (this.#filled < frame) return;
      this.#filled = 0;
      this.#encode(this.#partial);
    }
    const end = at + Math.floor((pcm.length - at) / frame) * frame;
    if (end > at) this.#encode(pcm.subarray(at, end));
    this.#partial.set(pcm.subarray(end));
    this.#filled = pcm.length - end;
  }

  /** Whole frames. Where no encoder takes them, packets that decoders conceal stand in: time goes on all the same. */
  #encode(frames: Int16Array): void {
    const count = frames.length / this.#partial.length;
    const promised = this.#frames.add(count);
    try {
      this.#current ??= this.#acquire();
      this.#current.stream.push(frames);
      this.#current.waiting.push(...promised);
      this.#isFailing = false;
    } catch (thrown) {
      this.#conceal(promised);
      this.#reportOnce(toGatewayError(thrown));
    }
  }

  #acquire(): Encoding {
    const options = { sampleRate: this.#rate, frameSamples: this.#partial.length };
    const waiting: Promised[] = [];
    const stream = this.#pool.acquire(options, {
      packets: (packets) => this.#streamOnPackets(encoding, packets),
      error: (error) => this.#streamOnError(encoding, error),
    });
    const encoding: Encoding = { stream, waiting };
    this.#encodings.add(encoding);
    return encoding;
  }

  #streamOnPackets(encoding: Encoding, packets: readonly Uint8Array[]): void {
    for (const packet of packets) {
      const promised = encoding.waiting.shift();
      if (promised !== undefined) promised.bytes = packet;
    }
    if (encoding !== this.#current && encoding.waiting.length === 0) this.#release(encoding);
    this.#frames.emitReady();
  }

  #streamOnError(encoding: Encoding, error: GatewayError): void {
    this.#release(encoding);
    if (encoding === this.#current) this.#current = null;
    this.#conceal(encoding.waiting.splice(0));
    this.#reportOnce(error);
  }

  #conceal(promised: readonly Promised[]): void {
    for (const frame of promised) frame.bytes = concealmentPacket(this.#frameMs);
    this.#frames.emitReady();
  }

  /** Once until frames are encoded again, not for each push. */
  #reportOnce(error: GatewayError): void {
    if (this.#isFailing || this.#isClosed) return;
    this.#isFailing = true;
    this.#handlers.error(error);
  }

  /** The encoder at 24 kHz ends with the last whole frame; what is half made goes over to 48 kHz. */
  #useFullRate(): void {
    this.#flushResampler();
    const partial = this.#partial.subarray(0, this.#filled);
    const resampler = new Resampler({ fromRate: 24000, toRate: 48000 });
    const doubled = [resampler.push(partial), resampler.flush()];
    this.#retire();
    this.#rate = 48000;
    this.#tail = tailAt(48000);
    this.#converter = new RateConverter(48000);
    this.#partial = new Int16Array(48 * this.#frameMs);
    this.#filled = 0;
    for (const piece of doubled) this.#pushSamples(piece);
  }

  /** The encoder goes back to the pool with its last packet. */
  #retire(): void {
    const former = this.#current;
    this.#current = null;
    if (former !== null && former.waiting.length === 0) this.#release(former);
  }

  #release(encoding: Encoding): void {
    this.#encodings.delete(encoding);
    encoding.stream.release();
  }
}

function tailAt(rate: EncoderRate): QuietTail {
  return new QuietTail((OPUS_LOOKAHEAD_48K * rate) / CLOCK_RATE);
}
