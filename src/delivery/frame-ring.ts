/**
 * The frames of one rendition that may still be needed, in one growing block of bytes.
 *
 *   arena   |....frame 7|frame 8|frame 9|free......|   a frame never wraps: what does not fit before the end of
 *            ^ write                                    the arena starts again at 0
 *   slots   offset and length of frame i at i % slots
 *
 * Frames are copied in (160 bytes of mu-law cost less than keeping the upstream's 64 KiB chunk alive) and handed
 * out as views that hold until the next `append`. Who appends decides what may go: `trim` frees the oldest, and
 * the arena grows when nothing was freed in time, up to `maxBytes`; past that the oldest frames are overwritten.
 */
const INITIAL_ARENA_BYTES = 2048;
const INITIAL_SLOTS = 16;
const GRAIN_BYTES = 1024;

export class FrameRing {
  readonly #maxBytes: number;
  #arena = new Uint8Array(INITIAL_ARENA_BYTES);
  #offsets = new Int32Array(INITIAL_SLOTS);
  #lengths = new Int32Array(INITIAL_SLOTS);
  #writeOffset = 0;
  #first = 0;
  #next = 0;

  /** `maxBytes`: bound on the arena, bytes. */
  constructor(maxBytes: number) {
    this.#maxBytes = Math.max(maxBytes, INITIAL_ARENA_BYTES);
  }

  /** Index of the oldest frame kept. */
  get first(): number {
    return this.#first;
  }

  /** Index that the next frame will get. */
  get next(): number {
    return this.#next;
  }

  get capacityBytes(): number {
    return this.#arena.byteLength;
  }

  /** Takes whole frames of `frameBytes` in a row; without it all is one frame. */
  append(bytes: Uint8Array, frameBytes: number = bytes.byteLength): void {
    if (frameBytes === 0) this.#note(this.#place(0), 0);
    for (let at = 0; at < bytes.byteLength; ) {
      const offset = this.#place(frameBytes);
      const fitting = Math.floor(this.#roomBehind(offset) / frameBytes) * frameBytes;
      const end = Math.min(bytes.byteLength, at + Math.max(frameBytes, fitting));
      this.#arena.set(at === 0 && end === bytes.byteLength ? bytes : bytes.subarray(at, end), offset);
      for (let frame = at; frame < end; frame += frameBytes) this.#note(offset + frame - at, frameBytes);
      at = end;
    }
  }

  #note(offset: number, bytes: number): void {
    if (this.#next - this.#first === this.#offsets.length) this.#growSlots();
    const slot = this.#next % this.#offsets.length;
    this.#offsets[slot] = offset;
    this.#lengths[slot] = bytes;
    this.#writeOffset = offset + bytes;
    this.#next += 1;
  }

  /** A view of frame `index`, or undefined when it is gone or not there yet; valid until the next append. */
  frame(index: number): Uint8Array | undefined {
    if (index < this.#first || index >= this.#next) return undefined;
    const slot = index % this.#offsets.length;
    const offset = this.#offsets[slot] ?? 0;
    return this.#arena.subarray(offset, offset + (this.#lengths[slot] ?? 0));
  }

  /** Forgets every frame from `index` on; the next one appended gets that index. */
  cutTo(index: number): void {
    if (index >= this.#next) return;
    this.#next = Math.max(index, this.#first);
    const last = this.#next - 1;
    if (last < this.#first) return;
    const slot = last % this.#offsets.length;
    this.#writeOffset = (this.#offsets[slot] ?? 0) + (this.#lengths[slot] ?? 0);
  }

  /** Frees every frame before `index`. */
  trim(index: number): void {
    if (index > this.#first) this.#first = Math.min(index, this.#next);
  }

  /** Where `bytes` fit: behind the last frame or at the start of the arena; grows or evicts until they do. */
  #place(bytes: number): number {
    for (;;) {
      const offset = this.#freeOffset(bytes);
      if (offset >= 0) return offset;
      if (this.#arena.byteLength < this.#maxBytes || bytes > this.#arena.byteLength) this.#growArena(bytes);
      else this.#first += 1;
    }
  }

  #freeOffset(bytes: number): number {
    if (this.#first === this.#next) return bytes <= this.#arena.byteLength ? 0 : -1;
    const oldest = this.#offsets[this.#first % this.#offsets.length] ?? 0;
    if (this.#writeOffset > oldest) {
      if (this.#writeOffset + bytes <= this.#arena.byteLength) return this.#writeOffset;
      return bytes <= oldest ? 0 : -1;
    }
    return this.#writeOffset + bytes <= oldest ? this.#writeOffset : -1;
  }

  /** Free bytes in a row from a free place on. */
  #roomBehind(offset: number): number {
    const oldest = this.#offsets[this.#first % this.#offsets.length] ?? 0;
    const isBeforeOldest = this.#first !== this.#next && oldest >= offset;
    return (isBeforeOldest ? oldest : this.#arena.byteLength) - offset;
  }

  #growArena(bytes: number): void {
    // By a quarter: doubling would leave half of it unused in each of a thousand sessions.
    const wanted = Math.ceil(Math.max(this.#arena.byteLength * 1.25, bytes * 2) / GRAIN_BYTES) * GRAIN_BYTES;
    const size = Math.max(bytes, Math.min(wanted, this.#maxBytes));
    const arena = new Uint8Array(size);
    let writeOffset = 0;
    for (let index = this.#first; index < this.#next; index += 1) {
      const slot = index % this.#offsets.length;
      const length = this.#lengths[slot] ?? 0;
      const offset = this.#offsets[slot] ?? 0;
      arena.set(this.#arena.subarray(offset, offset + length), writeOffset);
      this.#offsets[slot] = writeOffset;
      writeOffset += length;
    }
    this.#arena = arena;
    this.#writeOffset = writeOffset;
  }

  #growSlots(): void {
    const count = this.#offsets.length;
    const offsets = new Int32Array(count * 2);
    const lengths = new Int32Array(count * 2);
    for (let index = this.#first; index < this.#next; index += 1) {
      offsets[index % (count * 2)] = this.#offsets[index % count] ?? 0;
      lengths[index % (count * 2)] = this.#lengths[index % count] ?? 0;
    }
    this.#offsets = offsets;
    this.#lengths = lengths;
  }
}
