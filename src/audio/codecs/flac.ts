/**
 * FLAC, 16-bit mono, as it is spoken (RFC 9639): the fixed predictor of second order, which suits speech best, with
 * Rice-coded residuals, in blocks of 1024 samples. Choosing the order and cutting blocks into partitions would save 3 % of
 * speech (measured). The length is not known when the header goes out, so STREAMINFO says 0, which stands for that.
 */

import { concatBytes } from "../bytes.ts";

const BLOCK_SAMPLES = 1024;
/** The predictor looks at so many samples; a block begins with them unchanged. */
const ORDER = 2;
/** 15 is the escape code. */
const MAX_RICE_PARAMETER = 14;
const BITS_PER_SAMPLE = 16;
/** Section 9.1.2. */
const RATE_CODES: Readonly<Record<number, number>> = {
  8000: 4,
  16000: 5,
  22050: 6,
  24000: 7,
  32000: 8,
  44100: 9,
  48000: 10,
};

export class FlacEncoder {
  readonly #sampleRate: number;
  readonly #block = new Int16Array(BLOCK_SAMPLES);
  #filled = 0;
  #frames = 0;
  #isHeaderSent = false;

  /** Throws RangeError for a rate that no format of this project has. */
  constructor(options: { readonly sampleRate: number }) {
    if (RATE_CODES[options.sampleRate] === undefined) {
      throw new RangeError(`Cannot encode FLAC: rate is ${options.sampleRate} Hz`);
    }
    this.#sampleRate = options.sampleRate;
  }

  /** The frames that are full; the header comes with the first call. */
  push(pcm: Int16Array): Uint8Array {
    const pieces = this.#takeHeader();
    for (let at = 0; at < pcm.length; ) {
      const piece = pcm.subarray(at, at + BLOCK_SAMPLES - this.#filled);
      this.#block.set(piece, this.#filled);
      this.#filled += piece.length;
      at += piece.length;
      if (this.#filled === BLOCK_SAMPLES) pieces.push(this.#frame());
    }
    return concatBytes(pieces);
  }

  /** The last, shorter frame. Nothing can be pushed after it. */
  flush(): Uint8Array {
    const pieces = this.#takeHeader();
    if (this.#filled > 0) pieces.push(this.#frame());
    return concatBytes(pieces);
  }

  #takeHeader(): Uint8Array[] {
    if (this.#isHeaderSent) return [];
    this.#isHeaderSent = true;
    return [streamHeader(this.#sampleRate)];
  }

  #frame(): Uint8Array {
    const samples = this.#block.subarray(0, this.#filled);
    const frame = encodeFrame(samples, { sampleRate: this.#sampleRate, number: this.#frames });
    this.#frames += 1;
    this.#filled = 0;
    return frame;
  }
}

/** The marker and STREAMINFO (sections 6 and 8.2); no checksum of the samples, which are not known yet. */
function streamHeader(sampleRate: number): Uint8Array {
  const bits = new BitWriter(42);
  for (const character of "fLaC") bits.write(character.charCodeAt(0), 8);
  bits.write(0x80, 8);
  bits.write(34, 24);
  bits.write(BLOCK_SAMPLES, 16);
  bits.write(BLOCK_SAMPLES, 16);
  // Smallest and largest frame: not known.
  bits.write(0, 24);
  bits.write(0, 24);
  bits.write(sampleRate, 20);
  bits.write(0, 3);
  bits.write(BITS_PER_SAMPLE - 1, 5);
  // 36 bits of length and 16 bytes of MD5.
  for (let byte = 0; byte < 4; byte += 1) bits.write(0, 9);
  for (let byte = 0; byte < 16; byte += 1) bits.write(0, 8);
  return bits.bytes();
}

function encodeFrame(
  samples: Int16Array,
  facts: { readonly sampleRate: number; readonly number: number },
): Uint8Array {
  const bits = new BitWriter(samples.length * 3);
  // Sync code, blocks of a fixed size (section 9.1).
  bits.write(0xfff8, 16);
  const isFull = samples.length === BLOCK_SAMPLES;
  bits.write(isFull ? 10 : 7, 4);
  bits.write(RATE_CODES[facts.sampleRate] ?? 0, 4);
  // Mono, 16 bits, reserved.
  bits.write(0, 4);
  bits.write(4, 3);
  bits.write(0, 1);
  writeNumber(bits, facts.number);
  if (!isFull) bits.write(samples.length - 1, 16);
  bits.write(crc(bits.bytes(), CRC8, 8), 8);
  writeSubframe(bits, samples);
  bits.align();
  bits.write(crc(bits.bytes(), CRC16, 16), 16);
  return bits.bytes();
}

/** The frame's number, coded as UTF-8 codes characters, up to 31 bits (section 9.1.5). */
function writeNumber(bits: BitWriter, number: number): void {
  if (number < 0x80) {
    bits.write(number, 8);
    return;
  }
  let tails = 1;
  while (number >= 2 ** (6 * tails + 6 - tails)) tails += 1;
  const lead = (0xff << (7 - tails)) & 0xff;
  bits.write(lead | Math.floor(number / 2 ** (6 * tails)), 8);
  for (let tail = tails - 1; tail >= 0; tail -= 1) {
    bits.write(0x80 | (Math.floor(number / 2 ** (6 * tail)) & 0x3f), 8);
  }
}

/** Section 9.2: what the predictor leaves, or the samples unchanged where that would take more room. */
function writeSubframe(bits: BitWriter, samples: Int16Array): void {
  const residual = residualOf(samples);
  const parameter = parameterOf(residual);
  const cost = residual.reduce((sum, value) => sum + (value >>> parameter) + 1 + parameter, 0);
  if (samples.length <= ORDER || cost >= residual.length * BITS_PER_SAMPLE) {
    bits.write(0b00000010, 8);
    for (const sample of samples) bits.write(sample & 0xffff, BITS_PER_SAMPLE);
    return;
  }
  bits.write((8 + ORDER) << 1, 8);
  for (const sample of samples.subarray(0, ORDER)) bits.write(sample & 0xffff, BITS_PER_SAMPLE);
  // Rice codes with parameters of four bits, one partition.
  bits.write(0, 2);
  bits.write(0, 4);
  bits.write(parameter, 4);
  for (const value of residual) bits.writeRice(value, parameter);
}

/** Each sample behind the first two, less the straight line through the two before it; folded. */
function residualOf(samples: Int16Array): Uint32Array {
  const residual = new Uint32Array(Math.max(0, samples.length - ORDER));
  for (let at = ORDER; at < samples.length; at += 1) {
    const predicted = 2 * (samples[at - 1] ?? 0) - (samples[at - 2] ?? 0);
    residual[at - ORDER] = folded((samples[at] ?? 0) - predicted);
  }
  return residual;
}

/** Near the logarithm of the mean, which is where Rice codes are shortest. */
function parameterOf(residual: Uint32Array): number {
  const mean = residual.reduce((sum, value) => sum + value, 0) / Math.max(1, residual.length);
  return Math.min(MAX_RICE_PARAMETER, Math.floor(Math.log2(mean + 1)));
}

/** 0, -1, 1, -2, 2 ... as 0, 1, 2, 3, 4 ... */
function folded(value: number): number {
  return value < 0 ? -2 * value - 1 : 2 * value;
}

/** Generators x^8+x^2+x+1 and x^16+x^15+x^2+1 (sections 9.1.8 and 9.3). */
const CRC8 = crcTable(0x07, 8);
const CRC16 = crcTable(0x8005, 16);

function crcTable(generator: number, width: number): Uint16Array {
  const top = 1 << (width - 1);
  return Uint16Array.from({ length: 256 }, (_, byte) => {
    let value = byte << (width - 8);
    for (let bit = 0; bit < 8; bit += 1) value = (value << 1) ^ ((value & top) === 0 ? 0 : generator);
    return value & (2 ** width - 1);
  });
}

function crc(bytes: Uint8Array, table: Uint16Array, width: number): number {
  let value = 0;
  for (const byte of bytes) {
    const index = ((value >>> (width - 8)) ^ byte) & 0xff;
    value = ((value << 8) ^ (table[index] ?? 0)) & (2 ** width - 1);
  }
  return value;
}

/** Writes numbers of any width, highest bit first. */
class BitWriter {
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
