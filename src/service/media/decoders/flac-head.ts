/** What stands before the frames of a FLAC file (RFC 9639 section 8): checked, so that no decoder is opened for a broken one. */
import { invalidAudio, MAX_TAGS_BYTES, requireRate } from "./decoder.ts";

const BLOCK_HEADER_BYTES = 4;
const STREAM_INFO_BYTES = 34;
/** The marker and the first block. */
const START_BYTES = 4 + BLOCK_HEADER_BYTES + STREAM_INFO_BYTES;
const STREAM_INFO = 0;
/** Not allowed: a frame's sync would begin so. */
const FORBIDDEN_KIND = 127;
const MIN_BLOCK_SAMPLES = 16;
const MIN_BITS = 4;

export class FlacHead {
  /** Less than is needed to go on. */
  #held: Uint8Array = new Uint8Array(0);
  #isStarted = false;
  #isLastBlock = false;
  /** Bytes of a block that are passed over: pictures of megabytes are not held. */
  #toSkip = 0;
  #headBytes = 0;
  #isDone = false;

  /** Whether all of it was read. */
  get isDone(): boolean {
    return this.#isDone;
  }

  /** What follows the head. Throws ApiError 400 for a head that is broken. */
  push(bytes: Uint8Array): Uint8Array {
    if (this.#isDone) return bytes;
    let rest = this.#held.length === 0 ? bytes : Buffer.concat([this.#held, bytes]);
    this.#held = new Uint8Array(0);
    while (!this.#isDone) {
      const needed = this.#isStarted ? BLOCK_HEADER_BYTES : START_BYTES;
      const skipped = Math.min(this.#toSkip, rest.length);
      this.#toSkip -= skipped;
      rest = rest.subarray(skipped);
      if (this.#toSkip === 0 && this.#isLastBlock) this.#isDone = true;
      else if (rest.length < needed) {
        // A copy: the bytes are lent.
        this.#held = new Uint8Array(rest);
        return new Uint8Array(0);
      } else {
        if (this.#isStarted) this.#beginBlock(rest);
        else this.#start(rest);
        rest = rest.subarray(needed);
      }
    }
    return rest;
  }

  #start(bytes: Uint8Array): void {
    const fields = new DataView(bytes.buffer, bytes.byteOffset, START_BYTES);
    if (fields.getUint32(0) !== 0x664c6143) throw broken("it does not begin with fLaC");
    if ((fields.getUint32(4) & 0x7fff_ffff) !== STREAM_INFO_BYTES) {
      throw broken("its first block is no STREAMINFO of 34 bytes");
    }
    const [minSamples, maxSamples] = [fields.getUint16(8), fields.getUint16(10)];
    if (maxSamples < MIN_BLOCK_SAMPLES || minSamples > maxSamples) {
      throw broken(`its frames have from ${minSamples} to ${maxSamples} samples`);
    }
    // 20 bits of the rate, 3 of the channels, 5 of a sample's bits.
    const sound = fields.getUint32(18);
    requireRate(sound >>> 12);
    const bits = ((sound >>> 4) & 0x1f) + 1;
    if (bits < MIN_BITS) throw broken(`its samples have ${bits} bits`);
    this.#isStarted = true;
    this.#isLastBlock = (fields.getUint8(4) & 0x80) !== 0;
  }

  #beginBlock(header: Uint8Array): void {
    const [first = 0, high = 0, middle = 0, low = 0] = header;
    const kind = first & 0x7f;
    if (kind === FORBIDDEN_KIND || kind === STREAM_INFO) throw broken(`a later block has the type ${kind}`);
    this.#isLastBlock = (first & 0x80) !== 0;
    this.#toSkip = (high << 16) | (middle << 8) | low;
    this.#headBytes += BLOCK_HEADER_BYTES + this.#toSkip;
    if (this.#headBytes > MAX_TAGS_BYTES) throw invalidAudio("the header of the FLAC file is too large");
  }
}

function broken(what: string): Error {
  return invalidAudio(`the header of the FLAC file is broken: ${what}`);
}
