/** Reads Ogg Opus in pieces of any size: bytes in, Opus packets out, synchronously. */
import { brokenOgg, OggLink, type OnPacket } from "./ogg-link.ts";
import { FLAG_FIRST, type RawPage } from "./ogg-page.ts";
import { OggPages } from "./ogg-pages.ts";

export { opusPacketSamples48k } from "../codecs/opus-packet.ts";

export class OggOpusReader {
  readonly #pages = new OggPages();
  #link: OggLink | null = null;
  #links = 0;

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
    const taker = { broken: brokenOgg, onPage: (page: RawPage) => this.#readPage(page, onPacket) };
    while (rest.length > 0) rest = this.#pages.take(rest, taker);
  }

  /** The bytes have ended: throws GatewayError "upstream_protocol" in the middle of a page or a packet. */
  finish(): void {
    const { partialBytes } = this.#pages;
    if (partialBytes > 0) throw brokenOgg(`it ends after ${partialBytes} bytes of a page`);
    if (this.#link?.isInsidePacket) throw brokenOgg("it ends in the middle of a packet");
  }

  #readPage(page: RawPage, onPacket: OnPacket): void {
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
