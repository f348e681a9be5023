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
import { OPUS_LOOKAHEAD_48K } from "../codecs/opus-lookahead.ts";
import { concealmentPacket, silentPacket } from "../codecs/opus-packet.ts";
import { OggOpusPages } from "./ogg.ts";

/** Audio on one page at most, in samples at 48 kHz: 200 ms. */
const MAX_PAGE_SAMPLES = 9600;

export interface OggOpusStreamOptions {
  /** Length of every packet: 10, 20, 40 or 60 ms. */
  readonly frameMs: number;
  /** 32 bits that name the stream; random without it. */
  readonly serial?: number;
}

export class OggOpusStream {
  readonly #frameMs: number;
  readonly #pages: OggOpusPages;

  /**
   * The pre-skip of the header is that of packets made here: it is sent before any packet, and those of one stream may
   * be made here and the upstream's own. What an upstream's header lets players skip stands on the timeline.
   */
  constructor({ frameMs, serial }: OggOpusStreamOptions) {
    this.#frameMs = frameMs;
    this.#pages = new OggOpusPages({ serial, preSkip: OPUS_LOOKAHEAD_48K });
  }

  header(): Uint8Array {
    return this.#pages.header();
  }

  /** The pages of a batch; throws RangeError for a packet that does not fit in a page (65,025 bytes). */
  pages(packets: readonly Uint8Array[]): Uint8Array {
    return this.#pages.pages(packets, MAX_PAGE_SAMPLES);
  }

  /** Pages in the place of packets that are missing: the decoder conceals them and its clock goes on. */
  concealed(count: number): Uint8Array {
    return this.#repeated(concealmentPacket(this.#frameMs), count);
  }

  /** Pages of packets of digital silence. */
  silence(count: number): Uint8Array {
    return this.#repeated(silentPacket(this.#frameMs), count);
  }

  finish(): Uint8Array {
    return this.#pages.lastPage(silentPacket(this.#frameMs));
  }

  #repeated(packet: Uint8Array, count: number): Uint8Array {
    return this.pages(Array.from({ length: count }, () => packet));
  }
}
