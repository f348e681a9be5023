/**
 * FLAC, 16-bit mono, as it is spoken (RFC 9639): fixed predictors with Rice-coded residuals, blocks of 4096 samples. The
 * length is not known when the header goes out, so STREAMINFO says 0, which stands for that (section 8.2).
 */

import { concatBytes } from "../bytes.ts";
import { BitWriter } from "./bit-writer.ts";

const BLOCK_SAMPLES = 4096;
const MAX_ORDER = 4;
/** 15 is the escape code. */
const MAX_RICE_PARAMETER = 14;
/** Each partition of a block's residual has a parameter of its own: 2^3 where the block can be cut so. */
const PARTITION_ORDER = 3;
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
  bits.write(isFull ? 12 : 7, 4);
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

interface Partition {
  readonly from: number;
  readonly to: number;
  readonly parameter: number;
}

/** Section 9.2: the fixed predictor that leaves least, or the samples as they are where none helps. */
function writeSubframe(bits: BitWriter, samples: Int16Array): void {
  const residual = Int32Array.from(samples);
  const order = predict(residual);
  const partitionOrder =
    samples.length % 2 ** PARTITION_ORDER === 0 && samples.length >> PARTITION_ORDER > order
      ? PARTITION_ORDER
      : 0;
  const partitions = partitionsOf(residual, order, partitionOrder);
  const cost = partitions.reduce((sum, partition) => sum + costOf(residual, partition), 0);
  if (cost >= samples.length * BITS_PER_SAMPLE) {
    bits.write(0b00000010, 8);
    for (const sample of samples) bits.write(sample & 0xffff, BITS_PER_SAMPLE);
    return;
  }
  bits.write((8 + order) << 1, 8);
  for (const sample of samples.subarray(0, order)) bits.write(sample & 0xffff, BITS_PER_SAMPLE);
  bits.write(0, 2);
  bits.write(partitionOrder, 4);
  for (const { from, to, parameter } of partitions) {
    bits.write(parameter, 4);
    for (let at = from; at < to; at += 1) bits.writeRice(folded(residual[at] ?? 0), parameter);
  }
}

/** Turns samples into the residual of the best fixed predictor; returns its order. Its warm-up stays as it is. */
function predict(values: Int32Array): number {
  const order = bestOrder(values);
  // Differences of differences, from the end so that what is needed still stands.
  for (let round = 1; round <= order; round += 1) {
    for (let at = values.length - 1; at >= round; at -= 1) {
      values[at] = (values[at] ?? 0) - (values[at - 1] ?? 0);
    }
  }
  return order;
}

/** The order that leaves the smallest sum, all of them in one pass. */
function bestOrder(values: Int32Array): number {
  const sums = new Float64Array(MAX_ORDER + 1);
  const before = new Int32Array(MAX_ORDER + 1);
  for (let at = 0; at < values.length; at += 1) {
    let difference = values[at] ?? 0;
    for (let order = 0; order <= MAX_ORDER; order += 1) {
      const next = difference - (before[order] ?? 0);
      before[order] = difference;
      // The warm-up is not predicted: it counts for none.
      if (at >= MAX_ORDER) sums[order] = (sums[order] ?? 0) + Math.abs(difference);
      difference = next;
    }
  }
  const most = Math.min(MAX_ORDER, values.length - 1);
  const eligible = sums.subarray(0, most + 1);
  return eligible.indexOf(Math.min(...eligible));
}

function partitionsOf(residual: Int32Array, order: number, partitionOrder: number): Partition[] {
  const count = 2 ** partitionOrder;
  const length = residual.length / count;
  return Array.from({ length: count }, (_, index) => {
    const range = { from: Math.max(order, index * length), to: (index + 1) * length };
    return { ...range, parameter: parameterOf(residual, range) };
  });
}

/** Near the logarithm of the mean, which is where Rice codes are shortest. */
function parameterOf(residual: Int32Array, range: { readonly from: number; readonly to: number }): number {
  let sum = 0;
  for (let at = range.from; at < range.to; at += 1) sum += folded(residual[at] ?? 0);
  const mean = sum / Math.max(1, range.to - range.from);
  return Math.min(MAX_RICE_PARAMETER, Math.max(0, Math.floor(Math.log2(mean + 1))));
}

function costOf(residual: Int32Array, { from, to, parameter }: Partition): number {
  let bits = 4;
  for (let at = from; at < to; at += 1) bits += (folded(residual[at] ?? 0) >>> parameter) + 1 + parameter;
  return bits;
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
