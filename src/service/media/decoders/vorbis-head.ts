/**
 * The three headers of Ogg Vorbis (Vorbis I specification, section 4.2): read and checked before a decoder is opened, which then
 * gets them on pages of their own, without the comments.
 */
import {
  buildPage,
  FLAG_FIRST,
  MAX_SEGMENTS,
  PAGE_HEADER_BYTES,
  type RawPage,
  SEGMENT_BYTES,
} from "../../../audio/containers/ogg-page.ts";
import { OggPages } from "../../../audio/containers/ogg-pages.ts";
import { invalidAudio, MAX_CHANNELS, MAX_TAGS_BYTES, requireRate } from "./decoder.ts";
import { checkVorbisSetup } from "./vorbis-setup.ts";

/** Comments without any: those of a file hold pictures. */
export const VORBIS_COMMENTS = Buffer.concat([Buffer.from("\u0003vorbis"), Buffer.alloc(8), Buffer.of(1)]);

const NAMES = ["\u0001vorbis", "\u0003vorbis", "\u0005vorbis"] as const;
const NAME_BYTES = 7;
const IDENTIFICATION = 0;
const COMMENTS = 1;
const IDENTIFICATION_BYTES = 30;
/** What a page can hold whole: 15 times as much as the setups of common encoders. */
const MAX_HEADER_BYTES = MAX_SEGMENTS * SEGMENT_BYTES - 1;
/** Exponents of 2. */
const MIN_BLOCK_BITS = 6;
const MAX_BLOCK_BITS = 13;

export class VorbisHead {
  readonly #pages = new OggPages();
  /** Serial number of the stream that the file begins with. */
  #serial: number | null = null;
  /** Those that were read. */
  #headers: Uint8Array[] = [];
  /** Pieces of the header that is being read. */
  #pieces: Uint8Array[] = [];
  #bytes = 0;
  #channels = 0;
  #isDone = false;
  /** Packets of sound that stand on the last page of the headers, against the specification. */
  #behind: Uint8Array = new Uint8Array(0);

  /** Whether all headers were read. */
  get isDone(): boolean {
    return this.#isDone;
  }

  /** What the decoder is to get: nothing before all headers were read. Throws ApiError 400 for broken ones. */
  push(bytes: Uint8Array): Uint8Array {
    if (this.#isDone) return bytes;
    let rest = bytes;
    while (rest.length > 0 && !this.#isDone) {
      rest = this.#pages.take(rest, { broken, onPage: (page) => this.#readPage(page) });
    }
    if (!this.#isDone) return new Uint8Array(0);
    const pages = this.#headers.map((packet, sequence) =>
      buildPage({
        flags: sequence === 0 ? FLAG_FIRST : 0,
        granule: 0,
        serial: this.#serial ?? 0,
        sequence,
        packets: [packet],
      }),
    );
    this.#headers = [];
    return Buffer.concat([...pages, this.#behind, rest]);
  }

  #readPage(page: RawPage): void {
    this.#serial ??= page.serial;
    // Other streams of the file have no sound, or one that is not decoded.
    if (page.serial !== this.#serial) return;
    let at = 0;
    for (const [index, length] of page.segments.entries()) {
      this.#add(page.body.subarray(at, at + length));
      at += length;
      if (length === SEGMENT_BYTES) continue;
      this.#endHeader();
      if (!this.#isDone) continue;
      const segments = page.segments.subarray(index + 1);
      if (segments.length > 0) {
        const front = page.bytes.subarray(0, PAGE_HEADER_BYTES - 1);
        this.#behind = Buffer.concat([front, Buffer.of(segments.length), segments, page.body.subarray(at)]);
      }
      return;
    }
  }

  #add(piece: Uint8Array): void {
    this.#bytes += piece.length;
    const isComments = this.#headers.length === COMMENTS;
    if (this.#bytes > (isComments ? MAX_TAGS_BYTES : MAX_HEADER_BYTES)) throw broken("one is too large");
    // A copy: the bytes are lent. Of comments the name alone is of interest.
    if (!isComments || this.#pieces.length === 0) this.#pieces.push(new Uint8Array(piece));
  }

  #endHeader(): void {
    const index = this.#headers.length;
    const header = Buffer.concat(this.#pieces);
    this.#pieces = [];
    this.#bytes = 0;
    if (header.toString("latin1", 0, NAME_BYTES) !== NAMES[index])
      throw broken("one of the three is missing");
    if (index === IDENTIFICATION) this.#channels = channelsOf(header);
    this.#headers.push(index === COMMENTS ? VORBIS_COMMENTS : header);
    if (this.#headers.length < NAMES.length) return;
    checkVorbisSetup(header, this.#channels);
    this.#isDone = true;
  }
}

/** Throws ApiError 400 where the identification header is broken. */
function channelsOf(header: Buffer): number {
  if (header.length < IDENTIFICATION_BYTES) throw broken(`the first one has ${header.length} bytes`);
  const version = header.readUInt32LE(7);
  if (version !== 0) throw broken(`it is version ${version}`);
  const channels = header.readUInt8(11);
  if (channels === 0 || channels > MAX_CHANNELS) throw broken(`it has ${channels} channels`);
  requireRate(header.readUInt32LE(12));
  const blocks = header.readUInt8(28);
  const [short, long] = [blocks & 0xf, blocks >> 4];
  if (short < MIN_BLOCK_BITS || long > MAX_BLOCK_BITS || short > long) {
    throw broken(`its blocks have ${2 ** short} and ${2 ** long} samples`);
  }
  if ((header.readUInt8(29) & 1) === 0) throw broken("the first one does not end");
  return channels;
}

function broken(what: string): Error {
  return invalidAudio(`the headers of the Ogg Vorbis stream are broken: ${what}`);
}
