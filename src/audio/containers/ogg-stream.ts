/**
 * Ogg Opus for a listener who hears a live stream (RFC 3533, RFC 7845): mono, packets of one length, pages cut where
 * the caller's batches end, so that nothing waits for a page to fill.
 *
 *   header()   OpusHead and OpusTags, a page each
 *   pages()    one page or more for a batch, none longer than 200 ms
 *   finish()   a page with the end-of-stream flag and one packet of silence
 *
 * Packets that the listener misses are not jumped over: RFC 7845 section 4.1 wants the granule position to count what
 * the pages hold, and packets without content in the place of the missing ones.
 */
import { concatBytes } from "../bytes.ts";
import { OPUS_LOOKAHEAD_48K } from "../codecs/opus-codec.ts";
import { concealmentPacket } from "../codecs/opus-packet.ts";
import { OggOpusWriter } from "./ogg.ts";
import { buildPage, FLAG_LAST, MAX_SEGMENTS, segmentsOf } from "./ogg-page.ts";

/** Audio on one page at most, ms. */
const MAX_PAGE_MS = 200;
const CLOCK_RATE = 48_000;
/** Pages of the header: OpusHead and OpusTags. */
const HEADER_PAGES = 2;

export interface OggOpusStreamOptions {
  /** Length of every packet: 10, 20, 40 or 60 ms. */
  readonly frameMs: number;
  /** 32 bits that name the stream; random without it. */
  readonly serial?: number;
}

export class OggOpusStream {
  readonly #serial: number;
  readonly #frameMs: number;
  readonly #frameSamples: number;
  #sequence = HEADER_PAGES;
  /** Samples at 48 kHz in all packets so far, the pre-skip included (RFC 7845 section 4). */
  #granule = 0;

  constructor(options: OggOpusStreamOptions) {
    this.#serial = (options.serial ?? Math.floor(Math.random() * 2 ** 32)) >>> 0;
    this.#frameMs = options.frameMs;
    this.#frameSamples = (options.frameMs * CLOCK_RATE) / 1000;
  }

  /**
   * Its pre-skip is that of packets made here: it is sent before any packet, and those of one stream may be made here
   * and the upstream's own. What an upstream's header lets players skip stands on the timeline.
   */
  header(): Uint8Array {
    return new OggOpusWriter({
      serial: this.#serial,
      preSkip: OPUS_LOOKAHEAD_48K,
      inputSampleRate: CLOCK_RATE,
    }).header();
  }

  /** The pages of a batch; throws RangeError for a packet that does not fit in a page (65,025 bytes). */
  pages(packets: readonly Uint8Array[]): Uint8Array {
    const maxPackets = Math.max(1, Math.floor(MAX_PAGE_MS / this.#frameMs));
    const pages: Uint8Array[] = [];
    let page: Uint8Array[] = [];
    let segments = 0;
    for (const packet of packets) {
      const needed = segmentsOf(packet);
      if (page.length === maxPackets || segments + needed > MAX_SEGMENTS) {
        pages.push(this.#page(page));
        page = [];
        segments = 0;
      }
      page.push(packet);
      segments += needed;
    }
    if (page.length > 0) pages.push(this.#page(page));
    return concatBytes(pages);
  }

  /** Pages in the place of packets that are missing: the decoder conceals them and its clock goes on. */
  concealed(count: number): Uint8Array {
    return this.#repeated(concealmentPacket(this.#frameMs), count);
  }

  /** Pages of packets of digital silence. */
  silence(count: number): Uint8Array {
    return this.#repeated(silentPacket(this.#frameMs), count);
  }

  /** Not an empty page: those have no granule position (RFC 3533 section 6), and players take the length from it. */
  finish(): Uint8Array {
    return this.#page([silentPacket(this.#frameMs)], FLAG_LAST);
  }

  #repeated(packet: Uint8Array, count: number): Uint8Array {
    return this.pages(Array.from({ length: count }, () => packet));
  }

  #page(packets: readonly Uint8Array[], flags = 0): Uint8Array {
    this.#granule += packets.length * this.#frameSamples;
    const fields = { flags, granule: this.#granule, serial: this.#serial, sequence: this.#sequence };
    this.#sequence = (this.#sequence + 1) >>> 0;
    return buildPage({ ...fields, packets });
  }
}

/**
 * A packet of digital silence: CELT, full band, mono, its frames' silence flag set (RFC 6716 sections 3.1, 3.2 and
 * 4.3). Unlike an empty packet it is not concealed with an echo of the sound before it.
 */
function silentPacket(frameMs: number): Uint8Array {
  const celt10 = 30 << 3;
  const celt20 = 31 << 3;
  const silent = [0xff, 0xfe];
  if (frameMs === 10) return new Uint8Array([celt10, ...silent]);
  if (frameMs === 20) return new Uint8Array([celt20, ...silent]);
  if (frameMs === 40) return new Uint8Array([celt20 | 1, ...silent, ...silent]);
  if (frameMs === 60) return new Uint8Array([celt20 | 3, 3, ...silent, ...silent, ...silent]);
  throw new RangeError(`Cannot make an Opus packet: ${frameMs} ms, expected 10, 20, 40 or 60`);
}
