/**
 * One codec + frame length + framing + band of a session's audio: encoded once, whoever listens. It knows where on the
 * timeline each of its frames stands; delivery groups take the frames out.
 */

import type { OpusPool } from "../audio/codecs/opus-pool.ts";
import { RtpPacketizer, rtpPayload } from "../audio/containers/rtp.ts";
import { AUDIO_FORMATS, frameBytes, frameSamples } from "../audio/formats.ts";
import { createFrameMaker, type FrameMaker } from "../audio/framing/frame-maker.ts";
import { TelephoneBand } from "../audio/resample/telephone-band.ts";
import type { GatewayError } from "../errors.ts";
import type { AudioDescription } from "../protocol/events.ts";
import type { AudioFormat, Band, Framing } from "../protocol/vocabulary.ts";
import { msOfTicks, TICKS_PER_SECOND, ticksPerSample } from "../timing/ticks.ts";
import { FrameRing } from "./frame-ring.ts";

export interface RenditionShape {
  readonly format: AudioFormat;
  readonly frameMs: number;
  readonly framing: Framing;
  readonly band: Band;
}

export interface RenditionOptions extends RenditionShape {
  /** Timeline position of the first frame. */
  readonly startTicks: number;
  /** Bound on the kept frames, bytes. */
  readonly maxRingBytes: number;
  readonly opusPool: OpusPool;
  /** A frame that was encoded elsewhere has come back (Opus). */
  readonly onEncodedFrame: () => void;
  readonly onError: (error: GatewayError) => void;
  /** For the headers of RTP; default: `freshWords`. */
  readonly randomWords?: () => readonly number[];
}

export class Rendition {
  readonly format: AudioFormat;
  readonly frameMs: number;
  readonly framing: Framing;
  readonly band: Band;
  readonly frameTicks: number;
  readonly #ring: FrameRing;
  readonly #maker: FrameMaker;
  /** null: all of the sound is heard. */
  readonly #filter: TelephoneBand | null;
  readonly #rtp: RtpPacketizer | null;
  readonly #onEncodedFrame: () => void;
  #isPushing = false;
  #isTalkspurtStart = true;
  /** Frame `#anchorIndex` starts at `#anchorTicks`; the ones behind it follow without a hole. */
  #anchorIndex = 0;
  #anchorTicks: number;
  /** Where frames before the anchor stand that are kept still: a cut moves what follows. Oldest first. */
  #formerAnchors: { readonly index: number; readonly ticks: number }[] = [];
  /** Frames that the maker made and a cut forgot. */
  #framesCut = 0;
  framesMade = 0;

  constructor(options: RenditionOptions) {
    this.format = options.format;
    this.frameMs = options.frameMs;
    this.framing = options.framing;
    this.band = options.band;
    this.#filter = options.band === "telephone" ? new TelephoneBand() : null;
    this.frameTicks = (options.frameMs * TICKS_PER_SECOND) / 1000;
    this.#ring = new FrameRing(options.maxRingBytes);
    this.#anchorTicks = options.startTicks;
    this.#onEncodedFrame = options.onEncodedFrame;
    this.#rtp = options.framing === "rtp" ? createPacketizer(options) : null;
    this.#maker = createFrameMaker(
      { format: options.format, frameMs: options.frameMs, opusPool: options.opusPool },
      { frames: (bytes, frameBytes) => this.#keep(bytes, frameBytes), error: options.onError },
    );
  }

  /** Index of the oldest frame kept, and of the next one to come. */
  get first(): number {
    return this.#ring.first;
  }
  get next(): number {
    return this.#ring.next;
  }

  /** Whether its frames come back from an encoder's thread. */
  get isEncodedElsewhere(): boolean {
    return AUDIO_FORMATS[this.format].codec === "opus";
  }

  startTicksOf(index: number): number {
    if (index >= this.#anchorIndex) return this.#anchorTicks + (index - this.#anchorIndex) * this.frameTicks;
    const former = this.#formerAnchors.findLast((anchor) => anchor.index <= index) ?? this.#formerAnchors[0];
    return former === undefined
      ? this.#anchorTicks + (index - this.#anchorIndex) * this.frameTicks
      : former.ticks + (index - former.index) * this.frameTicks;
  }

  /** End of everything pushed so far; exact after `flush`. */
  get endTicks(): number {
    return this.startTicksOf(this.#maker.framesPromised - this.#framesCut);
  }

  /** The frame that holds a timeline position, clamped to the frames that are kept or next. */
  indexAt(ticks: number): number {
    const index = this.#indexNear(ticks);
    return Math.max(this.#ring.first, Math.min(index, this.#ring.next));
  }

  /** Frames from a timeline position up to frame `index` that were there, kept or not. */
  countBetween(ticks: number, index: number): number {
    return Math.max(0, index - this.#indexNear(ticks));
  }

  frame(index: number): Uint8Array | undefined {
    return this.#ring.frame(index);
  }

  /** PCM of the session, at the source's rate. */
  pushPcm(pcm: Int16Array, rate: number): void {
    this.#isPushing = true;
    this.#maker.pushPcm(this.#filter?.push(pcm, rate) ?? pcm, rate);
    this.#isPushing = false;
  }

  /** Bytes that already are in this rendition's codec and rate. */
  pushPassThrough(bytes: Uint8Array): void {
    this.#isPushing = true;
    this.#maker.pushPassThrough(bytes);
    this.#isPushing = false;
  }

  /** Silence up to a timeline position, so that the next utterance starts where it does for everybody. */
  padTo(ticks: number): void {
    this.pushSilence(ticks - this.endTicks);
  }

  /** So much silence behind what was pushed. */
  pushSilence(ticks: number): void {
    const samples = Math.round(ticks / ticksPerSample(AUDIO_FORMATS[this.format].sampleRate));
    if (samples > 0) {
      this.#isPushing = true;
      this.#maker.pushSilence(samples);
      this.#isPushing = false;
    }
  }

  /** The next frame is the first of a talkspurt (RTP marker bit). */
  startTalkspurt(): void {
    this.#isTalkspurtStart = true;
  }

  /** Pads the last frame with silence. */
  flush(): void {
    this.#filter?.reset();
    this.#isPushing = true;
    this.#maker.flush();
    this.#isPushing = false;
  }

  /**
   * Forgets what is half made and every frame from `heardTicks` on, of those still with an encoder all but what stands
   * before `startTicks`; the next frame starts at `nextTicks`. From `sentIndex` on frames were sent to nobody: packets that
   * are never sent leave no hole, which their receiver would take for a loss and wait for.
   */
  cut(place: {
    readonly startTicks: number;
    readonly heardTicks: number;
    readonly nextTicks: number;
    readonly sentIndex?: number;
  }): void {
    const endIndex = Math.max(this.indexAt(place.heardTicks), this.#indexNear(place.startTicks));
    this.#filter?.reset();
    this.#maker.reset(Math.max(0, endIndex - this.#ring.next));
    const keptIndex = Math.max(endIndex, place.sentIndex ?? this.#ring.next);
    this.#rtp?.takeBack(Math.max(0, this.#ring.next - keptIndex));
    this.#ring.cutTo(endIndex);
    const next = Math.min(endIndex, this.#maker.framesPromised - this.#framesCut);
    this.#framesCut = this.#maker.framesPromised - next;
    const ticks = place.nextTicks;
    if (ticks === this.startTicksOf(next)) return;
    this.#formerAnchors = this.#formerAnchors.filter(
      (_, index, all) => (all[index + 1]?.index ?? this.#anchorIndex) > this.#ring.first,
    );
    if (this.#anchorIndex < next) {
      this.#formerAnchors.push({ index: this.#anchorIndex, ticks: this.#anchorTicks });
    }
    this.#anchorIndex = next;
    this.#anchorTicks = ticks;
  }

  #indexNear(ticks: number): number {
    const former = this.#formerAnchors;
    if (ticks >= this.#anchorTicks || former.length === 0) {
      return this.#anchorIndex + Math.floor((ticks - this.#anchorTicks) / this.frameTicks);
    }
    const place = Math.max(
      0,
      former.findLastIndex((candidate) => candidate.ticks <= ticks),
    );
    const anchor = former[place] ?? { index: 0, ticks: 0 };
    // What a cut took away has no frames: there, the next one is the first behind the cut.
    const endIndex = former[place + 1]?.index ?? this.#anchorIndex;
    return Math.min(endIndex, anchor.index + Math.floor((ticks - anchor.ticks) / this.frameTicks));
  }

  /** Nobody listens for now. */
  releaseEncoder(): void {
    this.#maker.releaseEncoder();
  }

  trim(index: number): void {
    this.#ring.trim(index);
  }

  close(): void {
    this.#maker.close();
  }

  describe(startIndex: number): AudioDescription {
    return describeAudio(this, msOfTicks(this.startTicksOf(startIndex)));
  }

  #keep(bytes: Uint8Array, frameBytes: number): void {
    if (this.#rtp === null) this.#ring.append(bytes, frameBytes);
    else {
      for (let at = 0; at < bytes.byteLength; at += frameBytes) {
        this.#ring.append(this.#rtp.wrap(bytes.subarray(at, at + frameBytes), this.#isTalkspurtStart));
        this.#isTalkspurtStart = false;
      }
    }
    this.framesMade += bytes.byteLength / frameBytes;
    if (!this.#isPushing) this.#onEncodedFrame();
  }
}

function describeAudio(shape: RenditionShape, startMs: number): AudioDescription {
  const facts = AUDIO_FORMATS[shape.format];
  return {
    codec: facts.codec,
    sample_rate: facts.sampleRate,
    channels: 1,
    frame_ms: shape.frameMs,
    frame_samples: frameSamples(shape.format, shape.frameMs),
    frame_bytes: frameBytes(shape.format, shape.frameMs),
    start_ms: startMs,
  };
}

/** Three random words of 32 bits. */
export function freshWords(): readonly number[] {
  return Array.from(crypto.getRandomValues(new Uint32Array(3)));
}

function createPacketizer(options: RenditionOptions): RtpPacketizer {
  const random = (options.randomWords ?? freshWords)();
  return new RtpPacketizer({
    ...rtpPayload(options.format),
    samplesPerFrame: frameSamples(options.format, options.frameMs),
    ssrc: random[0] ?? 0,
    sequence: (random[1] ?? 0) & 0xffff,
    timestamp: random[2] ?? 0,
  });
}
