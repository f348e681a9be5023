/** Writes numbers of any width, highest bit first. */

export class BitWriter {
  #bytes: Uint8Array;
  #length = 0;
  #pending = 0;
  #pendingBits = 0;

  constructor(capacity: number) {
    this.#bytes = new Uint8Array(capacity);
  }

  /** The low `count` bits, at most 24, highest first. */
  write(value: number, count: number): void {
    this.#pending = (this.#pending << count) | (value & (2 ** count - 1));
    this.#pendingBits += count;
    while (this.#pendingBits >= 8) {
      this.#pendingBits -= 8;
      this.#put((this.#pending >>> this.#pendingBits) & 0xff);
    }
    this.#pending &= 2 ** this.#pendingBits - 1;
  }

  /** A Rice code: so many zeros as the quotient says, a one, and the remainder (RFC 9639 section 9.2.7). */
  writeRice(value: number, parameter: number): void {
    for (let zeros = value >>> parameter; zeros > 0; zeros -= 16) this.write(0, Math.min(16, zeros));
    this.write(1, 1);
    if (parameter > 0) this.write(value, parameter);
  }

  align(): void {
    if (this.#pendingBits > 0) this.write(0, 8 - this.#pendingBits);
  }

  /** The whole bytes so far. */
  bytes(): Uint8Array {
    return this.#bytes.subarray(0, this.#length);
  }

  #put(byte: number): void {
    if (this.#length === this.#bytes.length) {
      const grown = new Uint8Array(this.#bytes.length * 2);
      grown.set(this.#bytes);
      this.#bytes = grown;
    }
    this.#bytes[this.#length] = byte;
    this.#length += 1;
  }
}
