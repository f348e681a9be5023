/**
 * One page of an Ogg stream (RFC 3533 section 6), as bytes:
 *
 *    0 "OggS"   4 version 0   5 flags   6 granule position (64 bits)   14 serial   18 sequence   22 checksum
 *   26 number of segments n   27 n segment lengths   27+n the segments: the packets in pieces of 255 bytes; a
 *      piece of fewer ends its packet, so that a packet of 510 bytes has the lengths 255, 255, 0
 *
 * All numbers are little-endian.
 */

export const PAGE_HEADER_BYTES = 27;
export const MAX_SEGMENTS = 255;
export const SEGMENT_BYTES = 255;

export const FLAG_CONTINUED = 1;
export const FLAG_FIRST = 2;
export const FLAG_LAST = 4;

const CAPTURE_PATTERN = new Uint8Array([0x4f, 0x67, 0x67, 0x53]);
const CHECKSUM_AT = 22;
/** RFC 3533: generator 0x04c11db7, no reflection, start and end value 0. */
const CRC_TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 24;
  for (let bit = 0; bit < 8; bit += 1) crc = (crc << 1) ^ (crc < 0 ? 0x04c11db7 : 0);
  return crc >>> 0;
});

export interface OggPage {
  readonly flags: number;
  /** -1 where no packet ends on the page. */
  readonly granule: number;
  readonly serial: number;
  readonly sequence: number;
  readonly packets: readonly Uint8Array[];
}

/** How many segments a packet takes. */
export function segmentsOf(packet: Uint8Array): number {
  return Math.floor(packet.length / SEGMENT_BYTES) + 1;
}

/** A page of whole packets; together they may have no more than MAX_SEGMENTS segments. */
export function buildPage(page: OggPage): Uint8Array {
  const segments = page.packets.reduce((total, packet) => total + segmentsOf(packet), 0);
  const bytes = page.packets.reduce((total, packet) => total + packet.length, 0);
  if (segments > MAX_SEGMENTS) {
    throw new RangeError(`Cannot build an Ogg page: ${segments} segments, expected at most ${MAX_SEGMENTS}`);
  }
  const built = new Uint8Array(PAGE_HEADER_BYTES + segments + bytes);
  const header = new DataView(built.buffer);
  built.set(CAPTURE_PATTERN);
  header.setUint8(5, page.flags);
  header.setBigInt64(6, BigInt(page.granule), true);
  header.setUint32(14, page.serial, true);
  header.setUint32(18, page.sequence, true);
  header.setUint8(26, segments);
  let table = PAGE_HEADER_BYTES;
  let body = PAGE_HEADER_BYTES + segments;
  for (const packet of page.packets) {
    const last = table + segmentsOf(packet) - 1;
    built.fill(SEGMENT_BYTES, table, last);
    built[last] = packet.length % SEGMENT_BYTES;
    table = last + 1;
    built.set(packet, body);
    body += packet.length;
  }
  header.setUint32(CHECKSUM_AT, pageChecksum(built), true);
  return built;
}

/** A page as it was read. */
export interface RawPage {
  /** All of it. */
  readonly bytes: Uint8Array;
  readonly flags: number;
  readonly granule: number;
  readonly serial: number;
  readonly sequence: number;
  readonly segments: Uint8Array;
  readonly body: Uint8Array;
}

/** Reads a page from exactly its bytes; null where its checksum is wrong. */
export function readPage(bytes: Uint8Array): RawPage | null {
  const header = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (header.getUint32(CHECKSUM_AT, true) !== pageChecksum(bytes)) return null;
  const bodyAt = PAGE_HEADER_BYTES + header.getUint8(26);
  return {
    bytes,
    flags: header.getUint8(5),
    granule: Number(header.getBigInt64(6, true)),
    serial: header.getUint32(14, true),
    sequence: header.getUint32(18, true),
    segments: bytes.subarray(PAGE_HEADER_BYTES, bodyAt),
    body: bytes.subarray(bodyAt),
  };
}

/** Whether bytes begin as a page does; fewer than four bytes count as far as they go. */
export function hasCapturePattern(bytes: Uint8Array): boolean {
  return CAPTURE_PATTERN.every((byte, index) => index >= bytes.length || bytes[index] === byte);
}

/** The checksum that a whole page should carry: its own field counts as zero. */
function pageChecksum(page: Uint8Array): number {
  let crc = 0;
  for (let at = 0; at < page.length; at += 1) {
    const byte = at >= CHECKSUM_AT && at < CHECKSUM_AT + 4 ? 0 : (page[at] as number);
    crc = ((crc << 8) ^ (CRC_TABLE[((crc >>> 24) ^ byte) & 0xff] as number)) >>> 0;
  }
  return crc;
}
