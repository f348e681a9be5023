/**
 * Cuts the upstream's audio into slices of a wanted length on the timeline, whatever the upstream format: bytes of
 * G.711 and PCM anywhere on a sample, Opus at its packets. A slice is decoded at most once, and only if a rendition
 * cannot take it as it is.
 */
import { parseUpstreamFormat } from "../audio/formats.ts";
import { OggOpusReader, opusPacketSamples48k } from "../audio/ogg-reader.ts";
import { createOpusDecoder, type OpusDecoder } from "../audio/opus-decoder.ts";
import { createSourceDecoder, type SourceDecoder } from "../audio/source-decoder.ts";
import { GatewayError } from "../errors.ts";
import { ticksPerSample } from "../timing/ticks.ts";

/** Samples quieter than this (of 32768) are silence: about -50 dB. */
const SILENCE_LEVEL = 100;

/** Bytes of a millisecond in an upstream format: exact for G.711 and PCM, the nominal bit rate for Opus. */
export function bytesPerMs(format: string): number {
  const facts = parseUpstreamFormat(format);
  if (facts === undefined) return 8;
  if (facts.bitrateKbps !== null) return facts.bitrateKbps / 8;
  return (facts.sampleRate * (facts.codec === "pcm" ? 2 : 1)) / 1000;
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

/** One upstream response's audio: bytes in, slices out. */
export class Source {
  readonly format: string;
  readonly #codec: "ulaw" | "alaw" | "pcm" | "opus";
  readonly #ticksPerSample: number;
  readonly #bytesPerSample: number;
  readonly #rate: number;
  readonly #ogg: OggOpusReader | null;
  #decoder: SourceDecoder | null = null;
  #opusDecoder: OpusDecoder | null = null;
  #pending: Uint8Array[] = [];
  #pendingBytes = 0;
  #receivedBytes = 0;
  #receivedSamples = 0;
  /** Samples before the speech that an Opus decoder discards; known after the first page. */
  #isHeadSeen = false;

  constructor(format: string) {
    const facts = parseUpstreamFormat(format);
    if (facts === undefined || facts.codec === "mp3" || facts.codec === "wav") {
      throw new GatewayError(
        "internal",
        `Source format can't be framed: ${format}, expected G.711, PCM or Opus`,
      );
    }
    this.format = format;
    this.#codec = facts.codec;
    this.#rate = facts.sampleRate;
    this.#ticksPerSample = ticksPerSample(facts.sampleRate);
    this.#bytesPerSample = facts.codec === "pcm" ? 2 : 1;
    this.#ogg = facts.codec === "opus" ? new OggOpusReader() : null;
  }

  /** What Opus decoders skip at the start, in ticks: speech sounds that much later than its packets. */
  get preSkipTicks(): number {
    return this.#ogg === null || !this.#isHeadSeen ? 0 : this.#ogg.preSkip * ticksPerSample(48_000);
  }

  get hasAudio(): boolean {
    return this.#codec === "opus" ? this.#pending.length > 0 : this.#pendingBytes >= this.#bytesPerSample;
  }

  /** Length of all audio that was pushed, whole samples. */
  get receivedTicks(): number {
    return this.#receivedSamples * this.#ticksPerSample;
  }

  push(audio: Uint8Array): void {
    if (audio.byteLength === 0) return;
    if (this.#ogg === null) {
      this.#receivedBytes += audio.byteLength;
      this.#receivedSamples = Math.floor(this.#receivedBytes / this.#bytesPerSample);
      this.#pending.push(audio);
      this.#pendingBytes += audio.byteLength;
      return;
    }
    this.#ogg.push(audio, (packet) => {
      this.#pending.push(packet);
      this.#receivedSamples += opusPacketSamples48k(packet);
    });
    this.#isHeadSeen = true;
  }

  /** At most `maxTicks` of audio, but at least a sample (a packet); undefined when there is none. */
  take(maxTicks: number): Slice | undefined {
    if (!this.hasAudio) return undefined;
    return this.#codec === "opus" ? this.#takePackets(maxTicks) : this.#takeBytes(maxTicks);
  }

  /** The response is over: half a sample or half a page left behind is an error. */
  finish(): void {
    this.#ogg?.finish();
    if (this.#ogg === null && this.#pendingBytes % this.#bytesPerSample !== 0) {
      throw new GatewayError("upstream_protocol", "Upstream audio is broken: an odd number of PCM bytes");
    }
  }

  close(): void {
    this.#decoder?.close();
    this.#opusDecoder?.close();
    this.#decoder = null;
    this.#opusDecoder = null;
    this.#pending = [];
    this.#pendingBytes = 0;
  }

  /** Loudness at or above the silence level anywhere in a slice: samples before it, or null. */
  leadingSilence(slice: Slice): number | null {
    const pcm = slice.pcm();
    for (let index = 0; index < pcm.length; index += 1) {
      if (Math.abs(pcm[index] ?? 0) > SILENCE_LEVEL) return index / slice.pcmRate;
    }
    return null;
  }

  #takeBytes(maxTicks: number): Slice {
    const wantedSamples = Math.max(1, Math.floor(maxTicks / this.#ticksPerSample));
    const available = Math.floor(this.#pendingBytes / this.#bytesPerSample);
    const samples = Math.min(wantedSamples, available);
    const bytes = this.#shiftBytes(samples * this.#bytesPerSample);
    let pcm: Int16Array | null = null;
    return {
      format: this.format,
      ticks: samples * this.#ticksPerSample,
      pcmRate: this.#rate,
      raw: () => [bytes],
      pcm: () => {
        this.#decoder ??= createSourceDecoder(this.format);
        pcm ??= this.#decoder.push(bytes);
        return pcm;
      },
    };
  }

  #shiftBytes(count: number): Uint8Array {
    this.#pendingBytes -= count;
    const first = this.#pending[0];
    if (first !== undefined && first.byteLength > count) {
      this.#pending[0] = first.subarray(count);
      return first.subarray(0, count);
    }
    if (first !== undefined && first.byteLength === count) {
      this.#pending.shift();
      return first;
    }
    const joined = new Uint8Array(count);
    for (let offset = 0; offset < count; ) {
      const piece = this.#pending[0] ?? new Uint8Array(0);
      const part = piece.subarray(0, count - offset);
      joined.set(part, offset);
      offset += part.byteLength;
      if (part.byteLength === piece.byteLength) this.#pending.shift();
      else this.#pending[0] = piece.subarray(part.byteLength);
    }
    return joined;
  }

  #takePackets(maxTicks: number): Slice {
    const packets: Uint8Array[] = [];
    let samples = 0;
    for (const packet of this.#pending) {
      if (samples > 0 && samples * this.#ticksPerSample >= maxTicks) break;
      packets.push(packet);
      samples += opusPacketSamples48k(packet);
    }
    this.#pending = this.#pending.slice(packets.length);
    let pcm: Int16Array | null = null;
    return {
      format: this.format,
      ticks: samples * this.#ticksPerSample,
      pcmRate: 48_000,
      raw: () => packets,
      pcm: () => {
        pcm ??= this.#decodePackets(packets, samples);
        return pcm;
      },
    };
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
