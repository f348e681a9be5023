/**
 * One logical stream inside Ogg Opus bytes: the pages from a first to a last one, and the packets on them.
 *
 * Packets are taken out of the pages by prism-media's OggDemuxer, driven by its transform hook instead of as a stream.
 * It is given whole pages of whole packets only, because (1.3.5) it waits forever on a packet that goes on on the next
 * page, joins its input anew with each piece (quadratic in small ones) and looks at neither checksums, page numbers
 * nor granule positions. Putting pages together, checking them and joining packets over pages is done by us.
 */
import prism from "prism-media";
import { GatewayError } from "../../errors.ts";
import { concatBytes } from "../bytes.ts";
import { opusPacketSamples48k } from "../codecs/opus-packet.ts";
import {
  buildPage,
  FLAG_CONTINUED,
  FLAG_LAST,
  MAX_SEGMENTS,
  type RawPage,
  SEGMENT_BYTES,
} from "./ogg-page.ts";

export type OnPacket = (packet: Uint8Array) => void;

/** The longest packet that a page can hold whole. */
const MAX_PACKET_BYTES = MAX_SEGMENTS * SEGMENT_BYTES - 1;

/** prism-media's demuxer with what it would put into its stream handed over at once. */
class PagePackets extends prism.opus.OggDemuxer {
  onPacket: OnPacket = () => undefined;

  override push(packet: Uint8Array | null): boolean {
    // No Buffer: its `slice` would be a view.
    if (packet !== null) this.onPacket(new Uint8Array(packet.buffer, packet.byteOffset, packet.length));
    return true;
  }

  readPage(page: Uint8Array): void {
    const buffer = Buffer.from(page.buffer, page.byteOffset, page.byteLength);
    this._transform(buffer, "binary", (error) => {
      if (error) throw error;
    });
  }
}

export class OggLink {
  readonly serial: number;
  readonly #demuxer = new PagePackets();
  /** Number of the page that must come next. */
  #sequence = 0;
  /** The pieces of a packet that goes on on the next page. */
  #fragment: Uint8Array[] = [];
  #fragmentBytes = 0;
  #preSkip: number | null = null;
  #hasTags = false;
  /** Granule position of the first sample, known after the first page of audio. */
  #startGranule: number | null = null;
  #endSamples48k: number | null = null;
  #isEnded = false;

  constructor(serial: number) {
    this.serial = serial;
    this.#demuxer.on("head", (head: Uint8Array) => {
      this.#preSkip = readPreSkip(head);
    });
    this.#demuxer.on("tags", () => {
      this.#hasTags = true;
    });
  }

  get preSkip(): number {
    return this.#preSkip ?? 0;
  }

  get endSamples48k(): number | null {
    return this.#endSamples48k;
  }

  get isEnded(): boolean {
    return this.#isEnded;
  }

  get isInsidePacket(): boolean {
    return this.#fragment.length > 0;
  }

  readPage(page: RawPage, onPacket: OnPacket): void {
    if (this.#isEnded) throw brokenOgg("pages follow the last one");
    if (page.sequence !== this.#sequence) throw brokenOgg(`page ${this.#sequence} is missing`);
    this.#sequence = (this.#sequence + 1) >>> 0;
    const isLast = (page.flags & FLAG_LAST) !== 0;
    if (isLast && page.granule >= 0) {
      this.#endSamples48k = Math.max(0, page.granule - (this.#startGranule ?? 0) - this.preSkip);
    }
    const samples = this.#readPackets(page, onPacket);
    if (this.#preSkip === null) throw brokenOgg("its first packet is no OpusHead");
    // On a last page the granule position may cut samples off, on any other one it counts them all.
    if (samples > 0) this.#startGranule ??= isLast ? 0 : Math.max(0, page.granule - samples);
    this.#isEnded = isLast;
  }

  /** Returns how many samples the packets hold that end on this page. */
  #readPackets(page: RawPage, onPacket: OnPacket): number {
    let samples = 0;
    this.#demuxer.onPacket = (packet) => {
      const duration = opusPacketSamples48k(packet);
      if (duration === 0) throw brokenOgg(`an Opus packet of ${packet.length} bytes has no valid duration`);
      samples += duration;
      onPacket(packet);
    };
    const isContinued = (page.flags & FLAG_CONTINUED) !== 0;
    if (isContinued !== this.isInsidePacket) throw brokenOgg("a packet is not continued as its pages say");
    const goesOn = page.segments.at(-1) === SEGMENT_BYTES;
    if (isContinued || goesOn) this.#readSpanningPage(page);
    else this.#demuxer.readPage(page.bytes);
    return samples;
  }

  /** The packets that end on a page which begins or ends inside a packet, each on a page of our own. */
  #readSpanningPage(page: RawPage): void {
    let start = 0;
    let end = 0;
    for (const length of page.segments) {
      end += length;
      if (length === SEGMENT_BYTES) continue;
      this.#addFragment(page.body.subarray(start, end));
      start = end;
      const packet = concatBytes(this.#fragment);
      this.#fragment = [];
      this.#fragmentBytes = 0;
      const fields = { flags: 0, granule: 0, serial: this.serial, sequence: 0 };
      this.#demuxer.readPage(buildPage({ ...fields, packets: [packet] }));
    }
    if (end > start) this.#addFragment(page.body.subarray(start, end));
  }

  /** Comments may be of any length (they hold pictures): the start of theirs, which names them, is enough. */
  #addFragment(piece: Uint8Array): void {
    const room = MAX_PACKET_BYTES - this.#fragmentBytes;
    if (piece.length > room && this.#hasTags) {
      throw brokenOgg(`a packet is longer than ${MAX_PACKET_BYTES} bytes`);
    }
    const kept = piece.subarray(0, room);
    this.#fragment.push(kept);
    this.#fragmentBytes += kept.length;
  }
}

/** RFC 7845 section 5.1: major version 0, one or two channels without a mapping table. */
function readPreSkip(head: Uint8Array): number {
  if (head.length < 19) throw brokenOgg(`OpusHead has ${head.length} bytes, expected 19 or more`);
  const fields = new DataView(head.buffer, head.byteOffset, head.byteLength);
  const version = fields.getUint8(8);
  if (version > 15) throw brokenOgg(`OpusHead has version ${version}, expected 0-15`);
  const channels = fields.getUint8(9);
  const family = fields.getUint8(18);
  if (family !== 0 || channels < 1 || channels > 2) {
    throw brokenOgg(`OpusHead has ${channels} channels in family ${family}, expected 1 or 2 in family 0`);
  }
  return fields.getUint16(10, true);
}

export function brokenOgg(what: string): GatewayError {
  return new GatewayError("upstream_protocol", `Cannot read the Ogg Opus stream: ${what}`);
}
