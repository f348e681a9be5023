/** The pages of an Ogg stream, read one by one as a player does. */
import { readPage } from "../../src/audio/containers/ogg-page.ts";

export interface Page {
  readonly flags: number;
  /** Samples at 48 kHz. */
  readonly granule: number;
  readonly serial: number;
  readonly sequence: number;
  /** Lengths of its segments, bytes. */
  readonly segments: readonly number[];
  /** How many packets end in it: each segment under 255 bytes ends one. */
  readonly packets: number;
}

/** Throws at a page whose checksum is wrong. */
export function pagesOf(bytes: Uint8Array): Page[] {
  const pages: Page[] = [];
  for (let at = 0; at < bytes.length; ) {
    const segments = [...bytes.subarray(at + 27, at + 27 + (bytes[at + 26] ?? 0))];
    const size = 27 + segments.length + segments.reduce((total, length) => total + length, 0);
    const page = readPage(bytes.subarray(at, at + size));
    if (page === null) throw new Error(`Bad checksum at ${at}`);
    const { flags, granule, serial, sequence } = page;
    const packets = segments.filter((length) => length < 255).length;
    pages.push({ flags, granule, serial, sequence, segments, packets });
    at += size;
  }
  return pages;
}
