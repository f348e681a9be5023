/** Memory for what comes from outside, of which many hold a part: bounded together. */
export class ByteRoom {
  readonly #maxBytes: number;
  #usedBytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  get usedBytes(): number {
    return this.#usedBytes;
  }

  hasRoomFor(bytes: number): boolean {
    return this.#usedBytes + bytes <= this.#maxBytes;
  }

  /** Whether there is room or not. A negative number gives back. */
  take(bytes: number): void {
    this.#usedBytes += bytes;
  }
}
