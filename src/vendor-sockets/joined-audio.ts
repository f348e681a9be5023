/**
 * The audio of consecutive upstream responses as one stream: what a client appends as it comes is playable. G.711 and
 * PCM in whole samples; MP3 as bare frames; Ogg Opus as one logical stream, so that players that stop at the first end
 * of a stream (many do where streams are chained) hear all of it.
 */
import { concatBytes } from "../audio/bytes.ts";
import { OggOpusWriter } from "../audio/containers/ogg.ts";
import { buildPage, FLAG_LAST, MAX_SEGMENTS, segmentsOf } from "../audio/containers/ogg-page.ts";
import { OggOpusReader, opusPacketSamples48k } from "../audio/containers/ogg-reader.ts";
import { parseUpstreamFormat } from "../audio/formats.ts";
import { bytesPerMs, silenceSlice } from "../session/source.ts";
import { ticksPerSample } from "../timing/ticks.ts";
import { Mp3Head } from "./mp3-head.ts";
import type { ResponseFilter } from "./response-filter.ts";

export interface JoinedAudio {
  /** Where the speech of this response begins in the whole stream, ms; settled with its first bytes. */
  readonly originMs: number;
  /** Sound of this response that was given out so far, ms. */
  readonly ms: number;
  /** Another response begins. */
  begin(): void;
  /** What can be sent now; possibly empty, possibly a view of `bytes`. Throws GatewayError "upstream_protocol". */
  push(bytes: Uint8Array): Uint8Array;
  /** The response is over: what was held back. */
  end(): Uint8Array;
  /** The whole stream is over. */
  finish(): Uint8Array;
}

const NO_BYTES = new Uint8Array(0);
const OPUS_RATE = 48_000;
const SAMPLES_PER_MS = 48;
/** A packet of silence for the last page. */
const LAST_PACKET_SAMPLES = 960;

/** `format`: one of Set A. */
export function createJoinedAudio(format: string): JoinedAudio {
  switch (parseUpstreamFormat(format)?.codec) {
    case "opus":
      return new JoinedOgg();
    case "mp3":
      return new JoinedBytes(bytesPerMs(format), new Mp3Head());
    case "pcm":
      return new JoinedBytes(bytesPerMs(format), new WholeSamples());
    default:
      return new JoinedBytes(bytesPerMs(format), null);
  }
}

/** Bytes whose number says how long they sound: exact for G.711 and PCM, and for MP3 of constant bit rate. */
class JoinedBytes implements JoinedAudio {
  readonly #bytesPerMs: number;
  readonly #filter: ResponseFilter | null;
  #bytes = 0;
  #bytesBefore = 0;

  constructor(bytesPerMillisecond: number, filter: ResponseFilter | null) {
    this.#bytesPerMs = bytesPerMillisecond;
    this.#filter = filter;
  }

  get originMs(): number {
    return this.#bytesBefore / this.#bytesPerMs;
  }
  get ms(): number {
    return this.#bytes / this.#bytesPerMs;
  }

  begin(): void {
    this.#bytesBefore += this.#bytes;
    this.#bytes = 0;
    this.#filter?.begin();
  }

  push(bytes: Uint8Array): Uint8Array {
    return this.#count(this.#filter?.push(bytes) ?? bytes);
  }

  end(): Uint8Array {
    return this.#count(this.#filter?.end() ?? NO_BYTES);
  }

  finish(): Uint8Array {
    return NO_BYTES;
  }

  #count(bytes: Uint8Array): Uint8Array {
    this.#bytes += bytes.length;
    return bytes;
  }
}

/** Clients take each message for itself: none may end inside a sample. */
class WholeSamples implements ResponseFilter {
  #half: Uint8Array = NO_BYTES;

  begin(): void {
    this.#half = NO_BYTES;
  }

  push(bytes: Uint8Array): Uint8Array {
    if (bytes.length === 0) return bytes;
    const all = this.#half.length === 0 ? bytes : concatBytes([this.#half, bytes]);
    const even = all.length - (all.length % 2);
    this.#half = all.slice(even);
    return all.subarray(0, even);
  }

  /** Half a sample is no sound. */
  end(): Uint8Array {
    return NO_BYTES;
  }
}

class JoinedOgg implements JoinedAudio {
  readonly #serial = Math.floor(Math.random() * 2 ** 32);
  #reader = new OggOpusReader();
  /** Number of the next page; the header's are 0 and 1. */
  #sequence = 2;
  /** Samples in all packets so far (RFC 7845 section 4). */
  #granule = 0;
  #granuleBefore = 0;
  /** Of the header, which is that of the first response; null until it was sent. */
  #preSkip: number | null = null;

  get originMs(): number {
    return Math.max(0, this.#granuleBefore + this.#reader.preSkip - (this.#preSkip ?? 0)) / SAMPLES_PER_MS;
  }
  get ms(): number {
    return Math.max(0, this.#granule - this.#granuleBefore - this.#reader.preSkip) / SAMPLES_PER_MS;
  }

  begin(): void {
    this.#granuleBefore = this.#granule;
    this.#reader = new OggOpusReader();
  }

  push(bytes: Uint8Array): Uint8Array {
    const packets: Uint8Array[] = [];
    this.#reader.push(bytes, (packet) => packets.push(packet));
    return packets.length === 0 ? NO_BYTES : concatBytes([...this.#header(), ...this.#pages(packets)]);
  }

  /** Throws where the response ends inside a page. */
  end(): Uint8Array {
    this.#reader.finish();
    return NO_BYTES;
  }

  /** A last page with a packet of silence: on an empty one players don't find the length. */
  finish(): Uint8Array {
    if (this.#preSkip === null) return NO_BYTES;
    const ticks = LAST_PACKET_SAMPLES * ticksPerSample(OPUS_RATE);
    return this.#page(silenceSlice("opus_48000_32", ticks).raw(), FLAG_LAST);
  }

  #header(): Uint8Array[] {
    if (this.#preSkip !== null) return [];
    this.#preSkip = this.#reader.preSkip;
    const facts = { serial: this.#serial, preSkip: this.#preSkip, inputSampleRate: OPUS_RATE };
    return [new OggOpusWriter(facts).header()];
  }

  /** All that has come goes out at once: nothing waits for a page to fill. */
  #pages(packets: readonly Uint8Array[]): Uint8Array[] {
    const pages: Uint8Array[] = [];
    let page: Uint8Array[] = [];
    let segments = 0;
    for (const packet of packets) {
      const needed = segmentsOf(packet);
      if (segments + needed > MAX_SEGMENTS) {
        pages.push(this.#page(page));
        page = [];
        segments = 0;
      }
      page.push(packet);
      segments += needed;
    }
    pages.push(this.#page(page));
    return pages;
  }

  #page(packets: readonly Uint8Array[], flags = 0): Uint8Array {
    for (const packet of packets) this.#granule += opusPacketSamples48k(packet);
    const page = { flags, granule: this.#granule, serial: this.#serial, sequence: this.#sequence, packets };
    this.#sequence = (this.#sequence + 1) >>> 0;
    return buildPage(page);
  }
}
