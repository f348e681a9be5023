/** Writes Ogg Opus, mono (RFC 3533, RFC 7845): packets in, pages out. */
import { concatBytes } from "../bytes.ts";
import { opusPacketSamples48k } from "../codecs/opus-packet.ts";
import { buildPage, FLAG_FIRST, FLAG_LAST, MAX_SEGMENTS, segmentsOf } from "./ogg-page.ts";

export interface OggOpusOptions {
  /** 32 bits that name the stream; random without it. */
  readonly serial?: number | undefined;
  /** Samples at 48 kHz that players drop at the start: OPUS_LOOKAHEAD_48K for our own encoders. */
  readonly preSkip: number;
  /** Hz of what was encoded; information only. Default 48,000. */
  readonly inputSampleRate?: number;
}

const VENDOR = "voicewire";
const CLOCK_RATE = 48_000;

/** The pages of one stream, numbered and with their granule positions. */
export class OggOpusPages {
  readonly #options: OggOpusOptions;
  readonly #serial: number;
  /** Number of the next page; the header's are 0 and 1. */
  #sequence = 2;
  /** Samples in all packets so far, pre-skip included: the granule position (RFC 7845 section 4). */
  #granule = 0;

  constructor(options: OggOpusOptions) {
    this.#options = options;
    this.#serial = (options.serial ?? Math.floor(Math.random() * 2 ** 32)) >>> 0;
  }

  get granule(): number {
    return this.#granule;
  }

  /** The two header pages that every stream begins with: the same ones whenever they are asked for. */
  header(): Uint8Array {
    const fields = { granule: 0, serial: this.#serial };
    return concatBytes([
      buildPage({ ...fields, flags: FLAG_FIRST, sequence: 0, packets: [opusHead(this.#options)] }),
      buildPage({ ...fields, flags: 0, sequence: 1, packets: [opusTags()] }),
    ]);
  }

  /**
   * Pages of whole packets, each as full as its segments and `maxSamples48k` allow: nothing waits for a page to fill.
   * Throws RangeError for a packet that does not fit in a page (65,025 bytes).
   */
  pages(packets: readonly Uint8Array[], maxSamples48k = Number.POSITIVE_INFINITY): Uint8Array {
    const pages: Uint8Array[] = [];
    let page: Uint8Array[] = [];
    let segments = 0;
    let samples = 0;
    for (const packet of packets) {
      const needed = segmentsOf(packet);
      const duration = opusPacketSamples48k(packet);
      if (page.length > 0 && (segments + needed > MAX_SEGMENTS || samples + duration > maxSamples48k)) {
        pages.push(this.page(page, this.#granule + samples));
        page = [];
        segments = 0;
        samples = 0;
      }
      page.push(packet);
      segments += needed;
      samples += duration;
    }
    if (page.length > 0) pages.push(this.page(page, this.#granule + samples));
    return concatBytes(pages);
  }

  /** One page, at whose end the stream stands at `granule`. */
  page(packets: readonly Uint8Array[], granule: number, flags = 0): Uint8Array {
    this.#granule = granule;
    const sequence = this.#sequence;
    this.#sequence = (sequence + 1) >>> 0;
    return buildPage({ flags, granule, serial: this.#serial, sequence, packets });
  }

  /** The last page. Not an empty one: those have no granule position (RFC 3533 section 6), and players take the length from it. */
  lastPage(packet: Uint8Array): Uint8Array {
    return this.page([packet], this.#granule + opusPacketSamples48k(packet), FLAG_LAST);
  }
}

export interface OggOpusWriterOptions extends OggOpusOptions {
  /** A page is sent when it holds this much audio, default 100. The first one is sent with its first packet. */
  readonly pageMs?: number;
}

const DEFAULT_PAGE_MS = 100;
const NO_BYTES = new Uint8Array(0);

/** A file, packet by packet: its pages fill up, and its end may be cut to the sample. */
export class OggOpusWriter {
  readonly #preSkip: number;
  readonly #pages: OggOpusPages;
  readonly #pageSamples: number;
  #packets: Uint8Array[] = [];
  #segments = 0;
  #pendingSamples = 0;
  #isFinished = false;

  constructor(options: OggOpusWriterOptions) {
    this.#preSkip = options.preSkip;
    this.#pages = new OggOpusPages(options);
    this.#pageSamples = ((options.pageMs ?? DEFAULT_PAGE_MS) * CLOCK_RATE) / 1000;
  }

  header(): Uint8Array {
    return this.#pages.header();
  }

  /**
   * Bytes to send now, possibly none; `samples48k` is the packet's duration in samples at 48 kHz. Say `isLast` where
   * the end of the packet is to be cut off: the cut has to stand on the packet's own page, which `finish` gives.
   */
  push(packet: Uint8Array, samples48k: number, { isLast = false }: { isLast?: boolean } = {}): Uint8Array {
    if (this.#isFinished) throw new TypeError("Cannot write Ogg: the stream is finished");
    const segments = segmentsOf(packet);
    if (segments > MAX_SEGMENTS) {
      throw new RangeError(`Cannot write Ogg: a packet of ${packet.length} bytes does not fit in a page`);
    }
    const pages = this.#segments + segments > MAX_SEGMENTS ? [this.#flush()] : [];
    this.#packets.push(packet);
    this.#segments += segments;
    this.#pendingSamples += samples48k;
    // The first sound must not wait for a page to fill.
    const isDue = this.#pages.granule === 0 || this.#pendingSamples >= this.#pageSamples;
    if (isDue && !isLast) pages.push(this.#flush());
    return concatBytes(pages);
  }

  /**
   * The last page. `totalSamples48k` is how long the audio is without the pre-skip: players cut what the last packet
   * holds beyond it (RFC 7845 section 4.4); without it, all is played. Empty when called again.
   */
  finish(totalSamples48k?: number): Uint8Array {
    if (this.#isFinished) return NO_BYTES;
    this.#isFinished = true;
    const whole = this.#pages.granule + this.#pendingSamples;
    const end = totalSamples48k === undefined ? whole : Math.min(whole, totalSamples48k + this.#preSkip);
    // Granule positions never go back, so that pages already sent can't be cut.
    return this.#pages.page(this.#packets, Math.max(this.#pages.granule, end), FLAG_LAST);
  }

  #flush(): Uint8Array {
    const page = this.#pages.page(this.#packets, this.#pages.granule + this.#pendingSamples);
    this.#packets = [];
    this.#segments = 0;
    this.#pendingSamples = 0;
    return page;
  }
}

/** RFC 7845 section 5.1. */
function opusHead({ preSkip, inputSampleRate = CLOCK_RATE }: OggOpusOptions): Uint8Array {
  const head = new Uint8Array(19);
  head.set(new TextEncoder().encode("OpusHead"));
  const fields = new DataView(head.buffer);
  fields.setUint8(8, 1);
  fields.setUint8(9, 1);
  fields.setUint16(10, preSkip, true);
  fields.setUint32(12, inputSampleRate, true);
  // Output gain 0, mapping family 0: already zero.
  return head;
}

/** RFC 7845 section 5.2: who made it, and no comments. */
function opusTags(): Uint8Array {
  const vendor = new TextEncoder().encode(VENDOR);
  const tags = new Uint8Array(8 + 4 + vendor.length + 4);
  tags.set(new TextEncoder().encode("OpusTags"));
  new DataView(tags.buffer).setUint32(8, vendor.length, true);
  tags.set(vendor, 12);
  return tags;
}
