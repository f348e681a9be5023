/**
 * Cuts the frames of a FLAC file apart (RFC 9639 section 9). No frame says its length: it ends where its checksum comes out
 * and the next header stands. The checksum goes on from one place to the next, so that the work grows with the bytes alone.
 */

/** Longest frame: 30 times as long as those of common encoders. Longer ones are passed over, as broken frames are. */
const MAX_FRAME_BYTES = 524_288;
/** Sync, block and rate, channels and bits, number, checksum. */
const MIN_HEADER_BYTES = 6;

export class FlacFrames {
  /** From the header of the frame that is looked for, once one was found. */
  #held: Uint8Array = new Uint8Array(0);
  #isInFrame = false;
  /** Bytes of `#held` that the checksum has: no next header begins in them. */
  #scanned = 0;
  #checksum = 0;

  /** The frames that are whole, which the next header shows. */
  push(bytes: Uint8Array): Uint8Array[] {
    this.#held = this.#held.length === 0 ? bytes : Buffer.concat([this.#held, bytes]);
    const frames: Uint8Array[] = [];
    while (this.#isInFrame ? this.#endFrame(frames) : this.#beginFrame());
    // A copy: the bytes are lent.
    this.#held = new Uint8Array(this.#held);
    return frames;
  }

  /** The last frame, which no header follows; null where it is cut off, or broken. */
  finish(): Uint8Array | null {
    if (!this.#isInFrame) return null;
    return checksum16(this.#held.subarray(this.#scanned), this.#checksum) === 0 ? this.#held : null;
  }

  /** False where more bytes are needed. */
  #beginFrame(): boolean {
    const at = this.#nextHeader(0);
    const isFound = at !== null && headerBytesAt(this.#held, at) !== "short";
    this.#held = this.#held.subarray(at ?? this.#held.length);
    if (!isFound) return false;
    this.#enterFrame();
    return true;
  }

  #enterFrame(): void {
    this.#isInFrame = true;
    this.#scanned = 0;
    this.#checksum = 0;
    this.#scanTo(MIN_HEADER_BYTES);
  }

  /** False where more bytes are needed. */
  #endFrame(frames: Uint8Array[]): boolean {
    const at = this.#nextHeader(this.#scanned);
    this.#scanTo(at ?? this.#held.length);
    if (at !== null && headerBytesAt(this.#held, at) === "short") return false;
    if (at !== null && this.#checksum === 0) {
      frames.push(this.#held.subarray(0, at));
      this.#held = this.#held.subarray(at);
      this.#enterFrame();
      return true;
    }
    if (this.#scanned > MAX_FRAME_BYTES) {
      this.#held = this.#held.subarray(this.#scanned);
      this.#isInFrame = false;
      return true;
    }
    if (at === null) return false;
    this.#scanTo(at + 1);
    return true;
  }

  #scanTo(end: number): void {
    this.#checksum = checksum16(this.#held.subarray(this.#scanned, end), this.#checksum);
    this.#scanned = end;
  }

  /** Where a header stands, or may stand when more bytes come; null where none does. */
  #nextHeader(from: number): number | null {
    for (let at = this.#held.indexOf(0xff, from); at >= 0; at = this.#held.indexOf(0xff, at + 1)) {
      if (headerBytesAt(this.#held, at) !== null) return at;
    }
    return null;
  }
}

/** Length of the frame header that stands there; null where none does. */
function headerBytesAt(bytes: Uint8Array, at: number): number | "short" | null {
  const [sync, strategy, sizes, kind, number] = bytes.subarray(at, at + 5);
  if (sync !== 0xff || (strategy !== undefined && (strategy & 0xfe) !== 0xf8)) return null;
  // A block size, a rate and channels that are reserved.
  if (sizes !== undefined && (sizes >> 4 === 0 || (sizes & 0xf) === 0xf)) return null;
  if (kind !== undefined && (kind >> 4 > 10 || ((kind >> 1) & 7) === 3 || (kind & 1) === 1)) return null;
  if (sizes === undefined || kind === undefined || number === undefined) return "short";
  const numberBytes = codedNumberBytes(number);
  if (numberBytes === null) return null;
  const end = at + 4 + numberBytes + blockSizeBytes(sizes >> 4) + rateBytes(sizes & 0xf);
  if (end >= bytes.length) return "short";
  return checksum8(bytes.subarray(at, end)) === bytes[end] ? end + 1 - at : null;
}

/** Length of a number that is coded as UTF-8 codes characters, by its first byte. */
function codedNumberBytes(first: number): number | null {
  const ones = Math.clz32(~(first << 24));
  if (ones === 0) return 1;
  return ones === 1 || ones === 8 ? null : ones;
}

function blockSizeBytes(code: number): number {
  if (code === 6) return 1;
  return code === 7 ? 2 : 0;
}

function rateBytes(code: number): number {
  if (code === 12) return 1;
  return code === 13 || code === 14 ? 2 : 0;
}

/** Generators x^8+x^2+x+1 and x^16+x^15+x^2+1 (sections 9.1.8 and 9.3). */
const TABLE8 = Uint8Array.from({ length: 256 }, (_, byte) => remainder(byte, 0x107, 8));
const TABLE16 = Uint16Array.from({ length: 256 }, (_, byte) => remainder(byte << 8, 0x18005, 16));

function remainder(value: number, generator: number, width: number): number {
  let rest = value;
  for (let bit = 0; bit < 8; bit += 1) rest = (rest << 1) ^ (((rest >> (width - 1)) & 1) * generator);
  return rest;
}

function checksum8(bytes: Uint8Array): number {
  let value = 0;
  for (const byte of bytes) value = TABLE8[value ^ byte] ?? 0;
  return value;
}

/** It is 0 for a whole frame with its own checksum. */
function checksum16(bytes: Uint8Array, start: number): number {
  let value = start;
  for (const byte of bytes) value = ((value << 8) & 0xffff) ^ (TABLE16[(value >> 8) ^ byte] ?? 0);
  return value;
}
