/** Puts the pages of an Ogg stream together from pieces of any size. */
import { hasCapturePattern, PAGE_HEADER_BYTES, type RawPage, readPage } from "./ogg-page.ts";

interface PageTaker {
  /** Makes what is thrown for anything that is not a sound page; nothing can be taken after that. */
  broken(what: string): Error;
  /** Its bytes may be a view into those that are taken. */
  onPage(page: RawPage): void;
}

export class OggPages {
  /** The start of a page whose rest has not come: grows to what is known of the page's size, so at most 65,307 bytes. */
  #partial: Uint8Array | null = null;
  #filled = 0;

  /** Bytes of a page whose rest has not come; 0 between two pages. */
  get partialBytes(): number {
    return this.#filled;
  }

  /** Takes one page at most, or a part of one, from the front of `bytes`; returns the rest. */
  take(bytes: Uint8Array, taker: PageTaker): Uint8Array {
    const size = this.#partial === null ? pageBytes(bytes, taker) : null;
    if (size === null || size > bytes.length) return this.#collect(bytes, taker);
    readTo(taker, bytes.subarray(0, size));
    return bytes.subarray(size);
  }

  /** Copies from the front of `bytes` into the partial page what is known to belong to it; returns the rest. */
  #collect(bytes: Uint8Array, taker: PageTaker): Uint8Array {
    const partial = this.#partial ?? new Uint8Array(PAGE_HEADER_BYTES);
    const taken = Math.min(bytes.length, partial.length - this.#filled);
    partial.set(bytes.subarray(0, taken), this.#filled);
    this.#filled += taken;
    const size = pageBytes(partial.subarray(0, this.#filled), taker);
    if (size !== null && size === this.#filled) {
      this.#partial = null;
      this.#filled = 0;
      readTo(taker, partial);
    } else {
      this.#partial = this.#filled < partial.length ? partial : grow(partial, size ?? headerBytes(partial));
    }
    return bytes.subarray(taken);
  }
}

function readTo({ broken, onPage }: PageTaker, bytes: Uint8Array): void {
  const page = readPage(bytes);
  if (page === null) throw broken("the checksum of a page is wrong");
  onPage(page);
}

/** Size of the page that begins here, or null while its header is not complete. */
function pageBytes(bytes: Uint8Array, { broken }: PageTaker): number | null {
  if (!hasCapturePattern(bytes)) throw broken("a page does not begin with OggS");
  if (bytes.length > 4 && bytes[4] !== 0) throw broken(`a page has version ${bytes[4]}, expected 0`);
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
