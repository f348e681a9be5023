/**
 * Memory in blocks of one size that is lent and comes back. What lives for seconds and is thrown away then is old when it
 * dies: to find it the collector walks the memory of the whole process, and it does so for every 64 MB of such buffers.
 */

/** Half a second of telephone sound. */
export const BLOCK_BYTES = 4096;

/** Most that waits to be used again, bytes. */
const MAX_SPARE_BYTES = 16 * 1024 * 1024;

export class BlockPool {
  readonly #spare: Uint8Array[] = [];
  #lent = 0;

  /** A block with whatever it held before. */
  take(): Uint8Array {
    this.#lent += 1;
    return this.#spare.pop() ?? new Uint8Array(BLOCK_BYTES);
  }

  /** Nobody may look at the block any more. More than 16 MB of them are left to the collector. */
  give(block: Uint8Array): void {
    this.#lent -= 1;
    if (this.spareBytes < MAX_SPARE_BYTES) this.#spare.push(block);
  }

  /** What is lent now, bytes. */
  get lentBytes(): number {
    return this.#lent * BLOCK_BYTES;
  }

  /** What waits to be used again, bytes. */
  get spareBytes(): number {
    return this.#spare.length * BLOCK_BYTES;
  }
}
