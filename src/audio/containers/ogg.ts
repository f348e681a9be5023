/** Writes Ogg Opus, mono (RFC 3533, RFC 7845): packets in, pages out. */
import { concatBytes } from "../bytes.ts";
import { buildPage, FLAG_FIRST, FLAG_LAST, MAX_SEGMENTS, segmentsOf } from "./ogg-page.ts";

export interface OggOpusWriterOptions {
  /** 32 bits that name the stream; random without it. */
  readonly serial?: number;
  /** Samples at 48 kHz that players drop at the start: OPUS_LOOKAHEAD_48K for our own encoders. */
  readonly preSkip: number;
  /** Hz of what was encoded; information only. */
  readonly inputSampleRate: number;
  /** A page is sent when it holds this much audio, default 100. The first one is sent with its first packet. */
  readonly pageMs?: number;
}

const SAMPLES_PER_MS = 48;
const DEFAULT_PAGE_MS = 100;
const NO_BYTES = new Uint8Array(0);
const VENDOR = "voicewire";

export class OggOpusWriter {
  readonly #options: OggOpusWriterOptions;
  readonly #serial: number;
  readonly #pageSamples: number;
  /** Number of the next page; the header's are 0 and 1. */
  #sequence = 2;
  /** Samples in all packets so far, pre-skip included: the granule position (RFC 7845 section 4). */
  #granule = 0;
  #packets: Uint8Array[] = [];
  #segments = 0;
  #pendingSamples = 0;
  /** Granule position of the last page sent; 0 while there is none with audio. */
  #granuleSent = 0;
  #isFinished = false;

  constructor(options: OggOpusWriterOptions) {
    this.#options = options;
    this.#serial = (options.serial ?? Math.floor(Math.random() * 2 ** 32)) >>> 0;
    this.#pageSamples = (options.pageMs ?? DEFAULT_PAGE_MS) * SAMPLES_PER_MS;
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
   * Bytes to send now, possibly none; `samples48k` is the packet's duration in samples at 48 kHz. Say `isLast` where
   * the end of the packet is to be cut off: the cut has to stand on the packet's own page, which `finish` gives.
   */
  push(packet: Uint8Array, samples48k: number, { isLast = false }: { isLast?: boolean } = {}): Uint8Array {
    if (this.#isFinished) throw new TypeError("Cannot write Ogg: the stream is finished");
    const segments = segmentsOf(packet);
    if (segments > MAX_SEGMENTS) {
      throw new RangeError(`Cannot write Ogg: a packet of ${packet.length} bytes does not fit in a page`);
    }
    const pages = this.#segments + segments > MAX_SEGMENTS ? [this.#flush(0)] : [];
    this.#packets.push(packet);
    this.#segments += segments;
    this.#pendingSamples += samples48k;
    this.#granule += samples48k;
    // The first sound must not wait for a page to fill.
    const isDue = this.#granuleSent === 0 || this.#pendingSamples >= this.#pageSamples;
    if (isDue && !isLast) pages.push(this.#flush(0));
    return concatBytes(pages);
  }

  /**
   * The last page. `totalSamples48k` is how long the audio is without the pre-skip: players cut what the last packet
   * holds beyond it (RFC 7845 section 4.4); without it, all is played. Empty when called again.
   */
  finish(totalSamples48k?: number): Uint8Array {
    if (this.#isFinished) return NO_BYTES;
    this.#isFinished = true;
    if (totalSamples48k !== undefined) {
      const end = Math.min(this.#granule, totalSamples48k + this.#options.preSkip);
      // Granule positions never go back, so that pages already sent can't be cut.
      this.#granule = Math.max(this.#granuleSent, end);
    }
    return this.#flush(FLAG_LAST);
  }

  #flush(flags: number): Uint8Array {
    const page = buildPage({
      flags,
      granule: this.#granule,
      serial: this.#serial,
      sequence: this.#sequence,
      packets: this.#packets,
    });
    this.#sequence += 1;
    this.#packets = [];
    this.#segments = 0;
    this.#pendingSamples = 0;
    this.#granuleSent = this.#granule;
    return page;
  }
}

/** RFC 7845 section 5.1. */
function opusHead(options: OggOpusWriterOptions): Uint8Array {
  const head = new Uint8Array(19);
  head.set(new TextEncoder().encode("OpusHead"));
  const fields = new DataView(head.buffer);
  fields.setUint8(8, 1);
  fields.setUint8(9, 1);
  fields.setUint16(10, options.preSkip, true);
  fields.setUint32(12, options.inputSampleRate, true);
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
