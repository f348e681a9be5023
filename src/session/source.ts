/**
 * Takes slices of a wanted length from the upstream's audio, whatever the upstream format: bytes of
 * G.711 and PCM anywhere on a sample, Opus at its packets. A slice is decoded at most once, and only if a rendition
 * cannot take it as it is.
 */
import { silenceBytes } from "../audio/analysis/silence.ts";
import { WholeSamples } from "../audio/analysis/whole-samples.ts";
import { createOpusDecoder, type OpusDecoder } from "../audio/codecs/opus-decoder.ts";
import { decodeSamples, encodeSamples, type SampleCodec } from "../audio/codecs/samples.ts";
import { OggOpusReader, opusPacketSamples48k } from "../audio/containers/ogg-reader.ts";
import { createSourceDecoder, type SourceDecoder } from "../audio/containers/source-decoder.ts";
import { parseUpstreamFormat } from "../audio/formats.ts";
import { SampleQueue } from "../audio/framing/sample-queue.ts";
import type { Leveller } from "../audio/loudness/leveller.ts";
import { GatewayError } from "../errors.ts";
import { ticksPerSample } from "../timing/ticks.ts";

/** 20 ms of digital silence: CELT-only, full band, mono (RFC 6716 section 3.1), and a frame that is coded as silent. */
const OPUS_SILENCE = [0xf8, 0xff, 0xfe] as const;
const OPUS_SILENCE_SAMPLES = 960;
/**
 * An Opus decoder that begins in the middle of speech hears these before: 200 ms. RFC 7845 section 4.6 asks for 80; behind
 * those a steady tone is still off by a tenth of its loudness, behind 160 by a hundredth.
 */
export const OPUS_PREROLL_PACKETS = 10;

/** Whether a source keeps the very bytes of such a format that it was given (Opus), and does not copy them. */
export function keepsBytes(format: string): boolean {
  return parseUpstreamFormat(format)?.codec === "opus";
}

export interface Slice {
  /** The upstream's output_format. */
  readonly format: string;
  readonly ticks: number;
  readonly pcmRate: number;
  /** The bytes as they came: one piece, or one an Opus packet. */
  raw(): readonly Uint8Array[];
  /** Decoded once, whoever asks. */
  pcm(): Int16Array;
}

/** What to do about silence at one end of a response: drop what is more than `keepTicks`, at most `maxTicks`. */
export interface SilenceLimit {
  readonly maxTicks: number;
  readonly keepTicks: number;
}

/**
 * Silence in an upstream format, to be rendered between segments; whole samples, so never longer than asked. Opus: whole
 * packets of 20 ms, so it may be up to 20 ms shorter, or nothing at all.
 */
export function silenceSlice(format: string, ticks: number): Slice {
  const { codec, sampleRate } = slicedFormat(format);
  const unit = codec === "opus" ? OPUS_SILENCE_SAMPLES : 1;
  const units = Math.max(0, Math.floor(ticks / (ticksPerSample(sampleRate) * unit)));
  const samples = units * unit;
  const facts = { format, ticks: samples * ticksPerSample(sampleRate), pcmRate: sampleRate };
  if (codec === "opus") {
    const packets = Array.from({ length: units }, () => Uint8Array.from(OPUS_SILENCE));
    return { ...facts, raw: () => packets, pcm: () => new Int16Array(samples) };
  }
  const bytes = silenceBytes(codec, samples);
  return { ...facts, raw: () => [bytes], pcm: () => decodeSamples(codec, bytes) };
}

/** One upstream response's audio: bytes in, slices out. */
export class Source {
  readonly format: string;
  readonly #codec: SampleCodec | "opus";
  readonly #ticksPerSample: number;
  readonly #rate: number;
  readonly #ogg: OggOpusReader | null;
  /** G.711 and PCM. */
  #samples: SampleQueue | null;
  /** null: samples stay as they are. */
  readonly #level: { readonly leveller: Leveller; readonly whole: WholeSamples } | null;
  /** Opus. */
  #packets: Uint8Array[] = [];
  #decoder: SourceDecoder | null = null;
  #opusDecoder: OpusDecoder | null = null;
  /** Samples of the packets taken, and of those among them that were decoded, up to the last one. */
  #takenSamples = 0;
  #decodedSamples = 0;
  /** The packets taken last: a decoder that begins in the middle of speech has to hear some before. */
  #lastPackets: readonly Uint8Array[] = [];
  #receivedSamples = 0;
  /** Samples before the speech that an Opus decoder discards; known after the first page. */
  #isHeadSeen = false;
  /** The silence before the first sound is dealt with, or it is too late to. */
  #isStartDecided = false;

  /** `store`: what another source has left on closing. `leveller`: what is taken goes through it; not for Opus. */
  constructor(format: string, store?: Uint8Array | null, leveller: Leveller | null = null) {
    const { codec, sampleRate } = slicedFormat(format);
    this.format = format;
    this.#codec = codec;
    this.#rate = sampleRate;
    this.#ticksPerSample = ticksPerSample(sampleRate);
    this.#ogg = codec === "opus" ? new OggOpusReader() : null;
    this.#samples = codec === "opus" ? null : new SampleQueue(codec, store ?? undefined);
    this.#level = codec === "opus" || leveller === null ? null : { leveller, whole: new WholeSamples(codec) };
  }

  /** What Opus decoders skip at the start, in ticks: speech sounds that much later than its packets. */
  get preSkipTicks(): number {
    return this.#ogg === null || !this.#isHeadSeen ? 0 : this.#ticksOf(this.#ogg.preSkip);
  }

  get hasAudio(): boolean {
    return this.#samples === null ? this.#packets.length > 0 : this.#samples.samples > 0;
  }

  /** Length of all audio that was received, whole samples; what was dropped counts. */
  get receivedTicks(): number {
    return this.#ticksOf(this.#receivedSamples);
  }

  /**
   * Silence behind the last sound of all that was received, whether it is still here or taken, in ticks; what was dropped
   * does not count. Always 0 for Opus.
   */
  get trailingSilenceTicks(): number {
    return this.#ticksOf(this.#samples?.trailingSilence ?? 0);
  }

  /** So much of what is here is held back while more may come: what is taken is levelled by what follows it. */
  get levelledBehindTicks(): number {
    return this.#ticksOf(this.#level?.leveller.aheadSamples ?? 0);
  }

  /** Whether a gain is known for what is taken next. */
  get isLevelKnown(): boolean {
    return this.#level === null || this.#level.leveller.isReady;
  }

  /** Length of the speech that was received: without what decoders of Opus skip at its start and cut off at its end. */
  get speechTicks(): number {
    if (this.#ogg === null) return this.receivedTicks;
    const heardTicks = this.receivedTicks - this.preSkipTicks;
    const { endSamples48k, links } = this.#ogg;
    return endSamples48k === null || links > 1
      ? heardTicks
      : Math.min(heardTicks, this.#ticksOf(endSamples48k));
  }

  /** Up to the last sound that was received; 0 where compressed audio is not looked into. */
  get soundTicks(): number {
    return this.#samples === null ? 0 : this.receivedTicks - this.trailingSilenceTicks;
  }

  /** G.711 and PCM are copied; Opus is kept, and must not change until it is taken. */
  push(audio: Uint8Array): void {
    if (audio.byteLength === 0) return;
    if (this.#samples !== null) {
      const before = this.#samples.samples;
      this.#samples.push(audio);
      this.#receivedSamples += this.#samples.samples - before;
      this.#measure(audio);
      return;
    }
    this.#ogg?.push(audio, (packet) => {
      this.#packets.push(packet);
      this.#receivedSamples += opusPacketSamples48k(packet);
    });
    this.#isHeadSeen = true;
  }

  /** At most `maxTicks` of audio, but at least a sample (a packet), good until the next push; undefined when there is none. */
  take(maxTicks: number): Slice | undefined {
    if (!this.hasAudio) return undefined;
    this.#isStartDecided = true;
    return this.#samples === null ? this.#takePackets(maxTicks) : this.#takeBytes(this.#samples, maxTicks);
  }

  /** The response is over: half a page left behind is an error. Half a sample is no sound: all the others were heard. */
  finish(): void {
    this.#ogg?.finish();
  }

  /** Returns memory that another source can be made with: what was taken of this one is no longer good then. */
  close(): Uint8Array | null {
    this.#decoder?.close();
    this.#opusDecoder?.close();
    this.#decoder = null;
    this.#opusDecoder = null;
    this.#packets = [];
    return this.#samples?.clear() ?? null;
  }

  /**
   * Drops silence before the first sound. Call it before the first take, again after each push, until it answers: the
   * ticks dropped, or null while all that came is silent, shorter than `maxTicks`, and more may come. Of a longer
   * silence the first `maxTicks` are all that is looked at, so `maxTicks` - `keepTicks` are dropped: the answer is the
   * same however the response is split. Later calls, and Opus: 0.
   */
  dropLeadingSilence(limit: SilenceLimit, isComplete: boolean): number | null {
    const queue = this.#samples;
    if (queue === null || this.#isStartDecided) return 0;
    const isOpen = !queue.hasSound && !isComplete;
    if (isOpen && limit.keepTicks < limit.maxTicks && this.#ticksOf(queue.leadingSilence) < limit.maxTicks) {
      return null;
    }
    this.#isStartDecided = true;
    const samples = this.#surplus(Math.min(queue.leadingSilence, this.#samplesIn(limit.maxTicks)), limit);
    queue.dropLeading(samples);
    return this.#ticksOf(samples);
  }

  /**
   * All has come: drops silence behind the last sound, as far as it is not taken. Ticks dropped; always 0 for Opus. What
   * was taken of that silence counts towards what is kept.
   */
  dropTrailingSilence(limit: SilenceLimit): number {
    const queue = this.#samples;
    if (queue === null) return 0;
    const samples = Math.min(this.#surplus(queue.trailingSilence, limit), queue.samples);
    queue.dropTrailing(samples);
    return this.#ticksOf(samples);
  }

  /**
   * Drops what is here behind the next `ticks`, rounded up to a sample (a packet), and whatever is left of a page: the
   * response ends there. Ticks dropped; silence behind the last sound is counted in what is kept.
   */
  dropBehind(ticks: number): number {
    this.#isStartDecided = true;
    const queue = this.#samples;
    if (queue === null || this.#codec === "opus") return this.#dropPacketsBehind(ticks);
    const samples = Math.min(Math.max(0, Math.ceil(ticks / this.#ticksPerSample)), queue.samples);
    const dropped = queue.samples - samples;
    // The queue counts silence as it is pushed, so what is kept is pushed again.
    const kept = Uint8Array.from(queue.take(samples));
    this.#samples = new SampleQueue(this.#codec, queue.clear());
    // Not by `push`, as it is measured already.
    this.#samples.push(kept);
    return this.#ticksOf(dropped);
  }

  /** As much of `ticks` as silence can stand for: Opus has none that short. */
  fillableTicks(ticks: number): number {
    return this.#samples === null ? 0 : ticks;
  }

  /** Silence behind what is here, rounded up to a sample. Opus: none. */
  addSilence(ticks: number): void {
    if (this.#codec === "opus" || ticks <= 0) return;
    this.push(silenceBytes(this.#codec, Math.ceil(ticks / this.#ticksPerSample)));
  }

  #dropPacketsBehind(ticks: number): number {
    let keptSamples = 0;
    let count = 0;
    for (const packet of this.#packets) {
      if (keptSamples * this.#ticksPerSample >= ticks) break;
      keptSamples += opusPacketSamples48k(packet);
      count += 1;
    }
    const behind = this.#packets.splice(count);
    return this.#ticksOf(behind.reduce((sum, packet) => sum + opusPacketSamples48k(packet), 0));
  }

  /** The next samples taken rise from nothing within `ticks` (3 ms do), if the first is a sound. Opus: no change. */
  fadeIn(ticks: number): void {
    this.#samples?.fadeIn(this.#samplesIn(ticks));
  }

  /** The last `ticks` of what is here, or all if it is less, fall to nothing, if the end is a sound. Opus: no change. */
  fadeOut(ticks: number): void {
    this.#samples?.fadeOut(this.#samplesIn(ticks));
  }

  #measure(audio: Uint8Array): void {
    if (this.#level === null) return;
    const { leveller, whole } = this.#level;
    leveller.measure(decodeSamples(whole.codec, whole.push(audio).bytes));
  }

  /** New bytes; `queue` has what follows them. */
  #levelled(bytes: Uint8Array, queue: SampleQueue): Uint8Array {
    if (this.#level === null) return bytes;
    const { leveller, whole } = this.#level;
    const pcm = decodeSamples(whole.codec, bytes);
    leveller.level(pcm, decodeSamples(whole.codec, queue.peek(leveller.aheadSamples)));
    return encodeSamples(whole.codec, pcm);
  }

  #ticksOf(samples: number): number {
    return samples * this.#ticksPerSample;
  }

  #samplesIn(ticks: number): number {
    return Math.max(0, Math.floor(ticks / this.#ticksPerSample));
  }

  /** Samples to drop of so many silent ones. */
  #surplus(silent: number, limit: SilenceLimit): number {
    const kept = Math.ceil(limit.keepTicks / this.#ticksPerSample);
    return Math.max(0, Math.min(silent - kept, this.#samplesIn(limit.maxTicks)));
  }

  #takeBytes(queue: SampleQueue, maxTicks: number): Slice {
    const samples = Math.min(Math.max(1, this.#samplesIn(maxTicks)), queue.samples);
    const bytes = this.#levelled(queue.take(samples), queue);
    let pcm: Int16Array | null = null;
    return {
      format: this.format,
      ticks: this.#ticksOf(samples),
      pcmRate: this.#rate,
      raw: () => [bytes],
      pcm: () => {
        this.#decoder ??= createSourceDecoder(this.format);
        pcm ??= this.#decoder.push(bytes);
        return pcm;
      },
    };
  }

  #takePackets(maxTicks: number): Slice {
    const packets: Uint8Array[] = [];
    let samples = 0;
    for (const packet of this.#packets) {
      if (samples > 0 && samples * this.#ticksPerSample >= maxTicks) break;
      packets.push(packet);
      samples += opusPacketSamples48k(packet);
    }
    this.#packets = this.#packets.slice(packets.length);
    const startSamples = this.#takenSamples;
    this.#takenSamples += samples;
    const before = this.#lastPackets;
    const copied = packets.slice(-OPUS_PREROLL_PACKETS).map((packet) => Uint8Array.from(packet));
    this.#lastPackets = [...before, ...copied].slice(-OPUS_PREROLL_PACKETS);
    let pcm: Int16Array | null = null;
    return {
      format: this.format,
      ticks: this.#ticksOf(samples),
      pcmRate: this.#rate,
      raw: () => packets,
      pcm: () => {
        if (pcm !== null) return pcm;
        // Nobody needed samples until now: the decoder knows nothing of what is before.
        if (this.#decodedSamples !== startSamples) this.#prerollOpus(before);
        this.#decodedSamples = startSamples + samples;
        pcm = this.#decodePackets(packets, samples);
        return pcm;
      },
    };
  }

  #prerollOpus(packets: readonly Uint8Array[]): void {
    this.#opusDecoder ??= createOpusDecoder();
    this.#opusDecoder.reset();
    for (const packet of packets) this.#opusDecoder.decode(packet);
  }

  #decodePackets(packets: readonly Uint8Array[], samples: number): Int16Array {
    this.#opusDecoder ??= createOpusDecoder();
    const pcm = new Int16Array(samples);
    let offset = 0;
    for (const packet of packets) {
      const decoded = this.#opusDecoder.decode(packet);
      pcm.set(decoded.subarray(0, samples - offset), offset);
      offset += decoded.length;
    }
    return pcm;
  }
}

/** The facts of a format that can be cut into slices. Throws GatewayError "internal" for others. */
function slicedFormat(format: string): { codec: SampleCodec | "opus"; sampleRate: number } {
  const facts = parseUpstreamFormat(format);
  if (facts === undefined || facts.codec === "mp3" || facts.codec === "wav") {
    throw new GatewayError(
      "internal",
      `Source format can't be cut into slices: ${format}, expected G.711, PCM or Opus`,
    );
  }
  return { codec: facts.codec, sampleRate: facts.sampleRate };
}
