/** Reads Ogg Opus in pieces of any size: bytes in, Opus packets out, synchronously. */
import { brokenOgg, OggLink, type OnPacket } from "./ogg-link.ts";
import { FLAG_FIRST, hasCapturePattern, PAGE_HEADER_BYTES, readPage } from "./ogg-page.ts";

export { opusPacketSamples48k } from "../codecs/opus-packet.ts";

export class OggOpusReader {
  #link: OggLink | null = null;
  #links = 0;
  /** The start of a page whose rest has not come: grows to what is known of the page's size, so at most 65,307 bytes. */
  #partial: Uint8Array | null = null;
  #filled = 0;

  /** Samples at 48 kHz that a decoder drops at the start; 0 until the first page has been read. */
  get preSkip(): number {
    return this.#link?.preSkip ?? 0;
  }

  /** How many streams have begun; 2 or more where streams are chained (RFC 3533 section 4). */
  get links(): number {
    return this.#links;
  }

  /**
   * Length of the audio in samples at 48 kHz, without the pre-skip; known before the packets of the last page are
   * handed over: what they hold beyond it is padding. null until then.
   */
  get endSamples48k(): number | null {
    return this.#link?.endSamples48k ?? null;
  }

  /** Whether the last page of the stream has been read. */
  get isEnded(): boolean {
    return this.#link?.isEnded ?? false;
  }

  /**
   * Hands over the audio packets of each page that is complete, in order; they may be views into `chunk`. Throws
   * GatewayError "upstream_protocol" for anything that is not sound Ogg Opus; nothing can be read after that.
   */
  push(chunk: Uint8Array, onPacket: OnPacket): void {
    let rest = chunk;
    while (rest.length > 0) {
      const size = this.#partial === null ? pageBytes(rest) : null;
      if (size !== null && size <= rest.length) {
        this.#readPage(rest.subarray(0, size), onPacket);
        rest = rest.subarray(size);
      } else {
        rest = this.#collect(rest, onPacket);
      }
    }
  }

  /** The bytes have ended: throws GatewayError "upstream_protocol" in the middle of a page or a packet. */
  finish(): void {
    if (this.#partial !== null) throw brokenOgg(`it ends after ${this.#filled} bytes of a page`);
    if (this.#link?.isInsidePacket) throw brokenOgg("it ends in the middle of a packet");
  }

  /** Copies from the front of `bytes` into the partial page what is known to belong to it; returns the rest. */
  #collect(bytes: Uint8Array, onPacket: OnPacket): Uint8Array {
    const partial = this.#partial ?? new Uint8Array(PAGE_HEADER_BYTES);
    const taken = Math.min(bytes.length, partial.length - this.#filled);
    partial.set(bytes.subarray(0, taken), this.#filled);
    this.#filled += taken;
    const size = pageBytes(partial.subarray(0, this.#filled));
    if (size !== null && size === this.#filled) {
      this.#partial = null;
      this.#filled = 0;
      this.#readPage(partial, onPacket);
    } else {
      this.#partial = this.#filled < partial.length ? partial : grow(partial, size ?? headerBytes(partial));
    }
    return bytes.subarray(taken);
  }

  #readPage(bytes: Uint8Array, onPacket: OnPacket): void {
    const page = readPage(bytes);
    if (page === null) throw brokenOgg("the checksum of a page is wrong");
    const isFirst = (page.flags & FLAG_FIRST) !== 0;
    if (isFirst && (this.#link === null || this.#link.isEnded)) {
      this.#link = new OggLink(page.serial);
      this.#links += 1;
    }
    if (this.#link === null) throw brokenOgg("it does not begin with the first page of a stream");
    // Pages of other streams that are multiplexed with ours are none of our business.
    if (page.serial === this.#link.serial) this.#link.readPage(page, onPacket);
  }
}

/** Size of the page that begins here, or null while its header is not complete. */
function pageBytes(bytes: Uint8Array): number | null {
  if (!hasCapturePattern(bytes)) throw brokenOgg("a page does not begin with OggS");
  if (bytes.length > 4 && bytes[4] !== 0) throw brokenOgg(`a page has version ${bytes[4]}, expected 0`);
  if (bytes.length < PAGE_HEADER_BYTES) return null;
  const header = headerBytes(bytes);
  if (bytes.length < header) return null;
  return bytes.subarray(PAGE_HEADER_BYTES, header).reduce((total, length) => total + length, header);
}

/** Size of the header with its table of segments. */
function headerBytes(bytes: Uint8Array): number {
  return PAGE_HEADER_BYTES + (bytes[PAGE_HEADER_BYTES - 1] ?? 0);
}

function grow(bytes: Uint8Array, size: number): Uint8Array {
  const grown = new Uint8Array(size);
  grown.set(bytes);
  return grown;
}
