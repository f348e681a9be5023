/** The smallest Ogg Vorbis file that has all a setup can have: two codebooks, a floor, a residue, a mapping, two modes. */
import { buildPage, FLAG_FIRST, FLAG_LAST } from "../../src/audio/containers/ogg-page.ts";

type Field = readonly [name: string, value: number, bits: number];

const CODEBOOK = 0x564342;

/** In their order in the packet (Vorbis I specification, section 4.2.4). */
const SETUP: readonly Field[] = [
  ["codebooks less 1", 1, 8],
  // Two codes of one bit, without values.
  ["sync", CODEBOOK, 24],
  ["dimensions", 1, 16],
  ["entries", 2, 24],
  ["ordered", 0, 1],
  ["sparse", 0, 1],
  ["length less 1", 0, 5],
  ["", 0, 5],
  ["lookup", 0, 4],
  // Four codes of two bits, for the values -2 to 1.
  ["", CODEBOOK, 24],
  ["", 1, 16],
  ["", 4, 24],
  ["", 1, 1],
  ["first length less 1", 1, 5],
  ["codes of that length", 4, 3],
  ["lattice", 1, 4],
  ["", 2, 16],
  ["", 0xe280, 16],
  ["", 1, 16],
  ["", 0x6280, 16],
  ["", 1, 4],
  ["", 0, 1],
  ["", 0b11100100, 8],
  ["times less 1", 0, 6],
  ["time", 0, 16],
  ["floors less 1", 0, 6],
  ["floor type", 1, 16],
  ["partitions of the floor", 1, 5],
  ["", 0, 4],
  ["", 0, 3],
  ["subclass bits", 0, 2],
  ["codebook of the floor and 1", 1, 8],
  ["", 0, 2],
  ["range bits", 5, 4],
  ["place", 7, 5],
  ["residues less 1", 0, 6],
  ["residue type", 1, 16],
  ["", 0, 24],
  ["", 16, 24],
  ["", 7, 24],
  ["classes less 1", 1, 6],
  ["classbook", 0, 8],
  ["", 0, 4],
  ["", 1, 4],
  ["codebook of the residue", 1, 8],
  ["mappings less 1", 0, 6],
  ["mapping type", 0, 16],
  ["submaps", 0, 1],
  ["coupling", 0, 1],
  ["reserved", 0, 2],
  ["", 0, 8],
  ["floor of the mapping", 0, 8],
  ["residue of the mapping", 0, 8],
  ["modes less 1", 1, 6],
  ["", 0, 1],
  ["window", 0, 16],
  ["transform", 0, 16],
  ["mapping of the mode", 0, 8],
  ["", 1, 1],
  ["", 0, 16],
  ["", 0, 16],
  ["", 0, 8],
  ["end", 1, 1],
];

/** `changed`: other values, by the names of the fields. */
export function vorbisSetup(changed: Readonly<Record<string, number>> = {}): Buffer {
  const bits = SETUP.flatMap(([name, value, count]) =>
    Array.from({ length: count }, (_, bit) => ((changed[name] ?? value) >> bit) & 1),
  );
  const bytes = Buffer.alloc(Math.ceil(bits.length / 8));
  for (const [at, bit] of bits.entries())
    bytes.writeUInt8((bytes[at >> 3] ?? 0) | (bit << (at & 7)), at >> 3);
  return Buffer.concat([Buffer.from("\u0005vorbis"), bytes]);
}

interface Identification {
  readonly version: number;
  readonly channels: number;
  readonly sampleRate: number;
  /** The exponents of both sizes: the short one's in the low half. */
  readonly blocks: number;
}

export function vorbisIdentification(changed: Partial<Identification> = {}): Buffer {
  const { version = 0, channels = 1, sampleRate = 8000, blocks = 0x76 } = changed;
  const packet = Buffer.alloc(30);
  packet.write("\u0001vorbis", "latin1");
  packet.writeUInt32LE(version, 7);
  packet.writeUInt8(channels, 11);
  packet.writeUInt32LE(sampleRate, 12);
  packet.writeUInt8(blocks, 28);
  packet.writeUInt8(1, 29);
  return packet;
}

export function vorbisComments(...comments: readonly string[]): Buffer {
  const sized = ["maker", ...comments].map((text) => {
    const bytes = Buffer.from(text);
    const size = Buffer.alloc(4);
    size.writeUInt32LE(bytes.length);
    return Buffer.concat([size, bytes]);
  });
  const [maker = Buffer.alloc(0), ...others] = sized;
  const count = Buffer.alloc(4);
  count.writeUInt32LE(comments.length);
  return Buffer.concat([Buffer.from("\u0003vorbis"), maker, count, ...others, Buffer.of(1)]);
}

/** Of short blocks and long ones, in no order that means anything. */
const PACKETS = Array.from({ length: 8 }, (_, index) =>
  Buffer.from([index % 3 === 0 ? 0x0e : 0x34, 0x9d, 37 * index, 0x6b]),
);

/** `headers`: those of the first three pages. */
export function vorbisFile(headers: readonly Uint8Array[] = defaultHeaders()): Buffer {
  const pages = [...headers.map((header) => [header]), PACKETS.slice(0, 5), PACKETS.slice(5)];
  return Buffer.concat(
    pages.map((packets, sequence) =>
      buildPage({
        flags: sequence === 0 ? FLAG_FIRST : sequence === pages.length - 1 ? FLAG_LAST : 0,
        granule: Math.max(0, sequence - headers.length + 1) * 200,
        serial: 3,
        sequence,
        packets,
      }),
    ),
  );
}

function defaultHeaders(): Uint8Array[] {
  return [vorbisIdentification(), vorbisComments(), vorbisSetup()];
}
