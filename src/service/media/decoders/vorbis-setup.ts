/**
 * The setup header of Vorbis (Vorbis I specification, section 4.2.4), which nothing is kept of: whatever a decoder would refuse in
 * it, or would index its tables with, is refused here.
 */
import { invalidAudio } from "./decoder.ts";

const HEADER_BYTES = 7;
const CODEBOOK_SYNC = 0x564342;
const MAX_CODE_BITS = 32;
/** The logarithms of a codebook's dimensions and entries together, as libvorbis has it. */
const MAX_CODEBOOK_BITS = 24;
/** Most points of a curve beside both ends. */
const MAX_FLOOR_POINTS = 63;

interface Codebook {
  readonly dimensions: number;
  readonly entries: number;
  /** Whether it stands for numbers, and not for its entries alone. */
  readonly hasValues: boolean;
}

/** `packet`: with its type and "vorbis" in front. Throws ApiError 400 for a broken one. */
export function checkVorbisSetup(packet: Uint8Array, channels: number): void {
  const bits = new BitReader(packet.subarray(HEADER_BYTES));
  const codebooks = Array.from({ length: bits.read(8) + 1 }, () => readCodebook(bits));
  for (let times = bits.read(6) + 1; times > 0; times -= 1) requireAt(bits.read(16) === 0, "a time");
  const floors = bits.read(6) + 1;
  for (let floor = 0; floor < floors; floor += 1) readFloor(bits, codebooks);
  const residues = bits.read(6) + 1;
  for (let residue = 0; residue < residues; residue += 1) readResidue(bits, codebooks);
  const mappings = bits.read(6) + 1;
  for (let mapping = 0; mapping < mappings; mapping += 1) readMapping(bits, { channels, floors, residues });
  for (let modes = bits.read(6) + 1; modes > 0; modes -= 1) {
    bits.read(1);
    const [window, transform] = [bits.read(16), bits.read(16)];
    requireAt(window === 0 && transform === 0 && bits.read(8) < mappings, "a mode");
  }
  requireAt(bits.read(1) === 1, "its end");
}

function requireAt(isTrue: boolean, what: string): asserts isTrue {
  if (!isTrue) throw invalidAudio(`the setup header of the Vorbis stream is broken at ${what}`);
}

function readCodebook(bits: BitReader): Codebook {
  requireAt(bits.read(24) === CODEBOOK_SYNC, "a codebook's start");
  const dimensions = bits.read(16);
  const entries = bits.read(24);
  requireAt(bitLength(dimensions) + bitLength(entries) <= MAX_CODEBOOK_BITS, "a codebook's size");
  const codes = bits.read(1) === 1 ? orderedCodes(bits, entries) : listedCodes(bits, entries);
  requireAt(isWholeTree(codes), "a codebook's codes");
  const lookup = bits.read(4);
  requireAt(lookup <= 2, "a codebook's values");
  if (lookup > 0) {
    bits.skip(64);
    const valueBits = bits.read(4) + 1;
    bits.skip(1);
    bits.skip(valueBits * (lookup === 1 ? latticeValues(entries, dimensions) : entries * dimensions));
  }
  return { dimensions, entries, hasValues: lookup > 0 };
}

/** How many codes there are of each number of bits. */
function listedCodes(bits: BitReader, entries: number): number[] {
  const counts = new Array<number>(MAX_CODE_BITS + 1).fill(0);
  const isSparse = bits.read(1) === 1;
  requireAt(entries * (isSparse ? 1 : 5) <= bits.left, "a codebook's codes");
  for (let entry = 0; entry < entries; entry += 1) {
    if (isSparse && bits.read(1) === 0) continue;
    const length = bits.read(5) + 1;
    counts[length] = (counts[length] ?? 0) + 1;
  }
  return counts;
}

function orderedCodes(bits: BitReader, entries: number): number[] {
  const counts = new Array<number>(MAX_CODE_BITS + 1).fill(0);
  let length = bits.read(5) + 1;
  for (let left = entries; left > 0; length += 1) {
    requireAt(length <= MAX_CODE_BITS, "a codebook's codes");
    const count = bits.read(bitLength(left));
    requireAt(count <= left, "a codebook's codes");
    counts[length] = count;
    left -= count;
  }
  return counts;
}

/** Codes that fill their tree. One alone, of one bit, needs not, nor does a codebook that has none. */
function isWholeTree(counts: readonly number[]): boolean {
  const codes = counts.reduce((sum, count) => sum + count, 0);
  if (codes === 0 || (codes === 1 && counts[1] === 1)) return true;
  return counts.reduce((sum, count, length) => sum + count * 2 ** -length, 0) === 1;
}

/** The greatest number whose power of `dimensions` is `entries` at most. */
function latticeValues(entries: number, dimensions: number): number {
  if (dimensions === 0 || entries === 0) return 0;
  let values = Math.floor(entries ** (1 / dimensions));
  while ((values + 1) ** dimensions <= entries) values += 1;
  while (values ** dimensions > entries) values -= 1;
  return values;
}

function readFloor(bits: BitReader, codebooks: readonly Codebook[]): void {
  const kind = bits.read(16);
  requireAt(kind <= 1, "a floor");
  if (kind === 0) readFloor0(bits, codebooks);
  else readFloor1(bits, codebooks);
}

function readFloor0(bits: BitReader, codebooks: readonly Codebook[]): void {
  const sizes = [bits.read(8), bits.read(16), bits.read(16)];
  requireAt(
    sizes.every((size) => size > 0),
    "a floor",
  );
  bits.skip(14);
  for (let books = bits.read(4) + 1; books > 0; books -= 1) {
    const codebook = codebooks[bits.read(8)];
    requireAt(codebook?.hasValues === true && codebook.dimensions > 0, "a floor");
  }
}

function readFloor1(bits: BitReader, codebooks: readonly Codebook[]): void {
  const classes = Array.from({ length: bits.read(5) }, () => bits.read(4));
  const points = Array.from({ length: Math.max(-1, ...classes) + 1 }, () => readFloorClass(bits, codebooks));
  bits.skip(2);
  const rangeBits = bits.read(4);
  const count = classes.reduce((sum, kind) => sum + (points[kind] ?? 0), 0);
  requireAt(count <= MAX_FLOOR_POINTS, "a floor");
  const places = Array.from({ length: count }, () => bits.read(rangeBits));
  requireAt(new Set([0, 1 << rangeBits, ...places]).size === count + 2, "a floor");
}

/** How many points it has. */
function readFloorClass(bits: BitReader, codebooks: readonly Codebook[]): number {
  const points = bits.read(3) + 1;
  const subclassBits = bits.read(2);
  if (subclassBits > 0) requireAt(bits.read(8) < codebooks.length, "a floor");
  // One more than the number of the codebook: 0 is none.
  for (let books = 1 << subclassBits; books > 0; books -= 1) {
    requireAt(bits.read(8) <= codebooks.length, "a floor");
  }
  return points;
}

function readResidue(bits: BitReader, codebooks: readonly Codebook[]): void {
  requireAt(bits.read(16) <= 2, "a residue");
  // Begin, end, and size of a partition.
  bits.skip(72);
  const classes = bits.read(6) + 1;
  const classbook = codebooks[bits.read(8)];
  requireAt(classbook !== undefined && classbook.dimensions > 0, "a residue");
  requireAt(classes ** classbook.dimensions <= classbook.entries, "a residue");
  let books = 0;
  for (let kind = 0; kind < classes; kind += 1) {
    const low = bits.read(3);
    const high = bits.read(1) === 1 ? bits.read(5) : 0;
    books += onesIn(low) + onesIn(high);
  }
  for (; books > 0; books -= 1) requireAt(codebooks[bits.read(8)]?.hasValues === true, "a residue");
}

function readMapping(
  bits: BitReader,
  {
    channels,
    floors,
    residues,
  }: { readonly channels: number; readonly floors: number; readonly residues: number },
): void {
  requireAt(bits.read(16) === 0, "a mapping");
  const submaps = bits.read(1) === 1 ? bits.read(4) + 1 : 1;
  const channelBits = bitLength(channels - 1);
  for (let steps = bits.read(1) === 1 ? bits.read(8) + 1 : 0; steps > 0; steps -= 1) {
    const [magnitude, angle] = [bits.read(channelBits), bits.read(channelBits)];
    requireAt(magnitude !== angle && magnitude < channels && angle < channels, "a mapping");
  }
  requireAt(bits.read(2) === 0, "a mapping");
  for (let channel = 0; submaps > 1 && channel < channels; channel += 1) {
    requireAt(bits.read(4) < submaps, "a mapping");
  }
  for (let submap = 0; submap < submaps; submap += 1) {
    bits.skip(8);
    const [floor, residue] = [bits.read(8), bits.read(8)];
    requireAt(floor < floors && residue < residues, "a mapping");
  }
}

function bitLength(value: number): number {
  return 32 - Math.clz32(value);
}

function onesIn(value: number): number {
  let ones = 0;
  for (let rest = value; rest > 0; rest >>= 1) ones += rest & 1;
  return ones;
}

/** The lowest bit of a byte first. Throws ApiError 400 behind the end. */
class BitReader {
  readonly #bytes: Uint8Array;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  get left(): number {
    return this.#bytes.length * 8 - this.#at;
  }

  /** 24 bits at most. */
  read(count: number): number {
    const from = this.#at;
    this.skip(count);
    let value = 0;
    for (let read = 0; read < count; ) {
      const bit = (from + read) & 7;
      const taken = Math.min(8 - bit, count - read);
      const byte = this.#bytes[(from + read) >> 3] ?? 0;
      value |= ((byte >> bit) & ((1 << taken) - 1)) << read;
      read += taken;
    }
    return value;
  }

  skip(count: number): void {
    requireAt(count <= this.left, "its end");
    this.#at += count;
  }
}
