/**
 * The bytes of one session's events, which are kept for seconds, in slabs of their own.
 *
 *   slab    |event 7|event 8|event 9|free....|   gone when nothing of it is needed any more
 *
 * In the slabs that Node shares among all small buffers they would stand between what lives for a moment, and each would
 * keep 8 KB alive: four times what they take themselves.
 */

/** Six or seven events with words or characters. */
const SLAB_BYTES = 2048;

export class EventBytes {
  #slab = Buffer.alloc(0);
  #used = 0;

  /** A text in UTF-8, for as long as somebody holds it. */
  write(text: string): Uint8Array {
    const length = Buffer.byteLength(text);
    // Half a slab would be left unused behind the one before it: better a slab of its own.
    if (length > SLAB_BYTES / 2) return ownBytes(text, length);
    if (this.#used + length > this.#slab.length) {
      this.#slab = Buffer.allocUnsafeSlow(SLAB_BYTES);
      this.#used = 0;
    }
    const from = this.#used;
    this.#used += length;
    this.#slab.write(text, from, length, "utf8");
    return this.#slab.subarray(from, this.#used);
  }
}

function ownBytes(text: string, length: number): Uint8Array {
  const bytes = Buffer.allocUnsafeSlow(length);
  bytes.write(text, 0, length, "utf8");
  return bytes;
}
