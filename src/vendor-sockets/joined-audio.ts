/**
 * The audio of consecutive upstream responses as one stream: what a client appends as it comes is playable. G.711 and
 * PCM in whole samples; MP3 as bare frames; Ogg Opus as one logical stream, so that players that stop at the first end
 * of a stream (many do where streams are chained) hear all of it.
 */
import { concatBytes } from "../audio/bytes.ts";
import { silentPacket } from "../audio/codecs/opus-packet.ts";
import { bytesOf, PcmAligner } from "../audio/codecs/pcm.ts";
import { OggOpusPages } from "../audio/containers/ogg.ts";
import { OggOpusReader } from "../audio/containers/ogg-reader.ts";
import { bytesPerMs, parseUpstreamFormat } from "../audio/formats.ts";
import { Mp3Head, type ResponseFilter } from "./mp3-head.ts";

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
const SAMPLES_PER_MS = 48;

/** `format`: one of STREAM_FORMATS. */
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

/** Clients take each message for itself: none may end inside a sample, and half of one at the end is no sound. */
class WholeSamples implements ResponseFilter {
  readonly #aligner = new PcmAligner();

  begin(): void {
    this.#aligner.reset();
  }

  push(bytes: Uint8Array): Uint8Array {
    return bytesOf(this.#aligner.push(bytes));
  }

  end(): Uint8Array {
    return NO_BYTES;
  }
}

class JoinedOgg implements JoinedAudio {
  #reader = new OggOpusReader();
  /** Those of the first response, whose header is everybody's; null until its first packet. */
  #pages: OggOpusPages | null = null;
  #preSkip = 0;
  #granuleBefore = 0;

  get originMs(): number {
    return Math.max(0, this.#granuleBefore + this.#reader.preSkip - this.#preSkip) / SAMPLES_PER_MS;
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
    if (packets.length === 0) return NO_BYTES;
    if (this.#pages !== null) return this.#pages.pages(packets);
    this.#preSkip = this.#reader.preSkip;
    const pages = new OggOpusPages({ preSkip: this.#preSkip });
    this.#pages = pages;
    return concatBytes([pages.header(), pages.pages(packets)]);
  }

  /** Throws where the response ends inside a page. */
  end(): Uint8Array {
    this.#reader.finish();
    return NO_BYTES;
  }

  /** A last page with a packet of silence. */
  finish(): Uint8Array {
    return this.#pages?.lastPage(silentPacket(20)) ?? NO_BYTES;
  }

  get #granule(): number {
    return this.#pages?.granule ?? 0;
  }
}
