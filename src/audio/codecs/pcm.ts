/**
 * Bytes <-> 16-bit samples. PCM on every wire here is little-endian, and so is every machine that
 * Node's release builds with uWebSockets.js run on; samples and bytes are therefore views of one another.
 */

const NO_SAMPLES = new Int16Array(0);

/** The little-endian bytes of samples: a view, no copy. */
export function bytesOf(pcm: Int16Array): Uint8Array {
  return new Uint8Array(pcm.buffer, pcm.byteOffset, pcm.byteLength);
}

/** Cuts a stream of bytes into whole samples: an odd byte at the end of a chunk waits for the next one. */
export class PcmAligner {
  /** The low byte of a sample whose high byte has not come; -1 = none. */
  #carry = -1;

  /** 0 or 1: at the end of a stream anything but 0 is half a sample. */
  get pendingBytes(): number {
    return this.#carry < 0 ? 0 : 1;
  }

  /** The whole samples so far: a view of `chunk` where its address allows that, otherwise a copy. */
  push(chunk: Uint8Array): Int16Array {
    if (chunk.length === 0) return NO_SAMPLES;
    const samples =
      this.#carry < 0 && chunk.byteOffset % 2 === 0
        ? new Int16Array(chunk.buffer, chunk.byteOffset, chunk.length >> 1)
        : this.#copy(chunk);
    const total = this.pendingBytes + chunk.length;
    this.#carry = total % 2 === 1 ? (chunk[chunk.length - 1] ?? 0) : -1;
    return samples;
  }

  /** Forgets half a sample. */
  reset(): void {
    this.#carry = -1;
  }

  #copy(chunk: Uint8Array): Int16Array {
    const carried = this.pendingBytes;
    const samples = new Int16Array((carried + chunk.length) >> 1);
    const bytes = bytesOf(samples);
    if (bytes.length === 0) return samples;
    if (carried === 1) bytes[0] = this.#carry;
    bytes.set(chunk.subarray(0, bytes.length - carried), carried);
    return samples;
  }
}
