/**
 * G.711 mu-law and A-law, by table. The tables are computed from the arithmetic of ITU-T G.191's `ulaw_compress`,
 * `alaw_compress` and their expansions, the reference software of Recommendation G.711.
 */

const ULAW_ENCODE = encodeTable(compressUlaw);
const ALAW_ENCODE = encodeTable(compressAlaw);
const ULAW_DECODE = Int16Array.from({ length: 256 }, (_, code) => expandUlaw(code));
const ALAW_DECODE = Int16Array.from({ length: 256 }, (_, code) => expandAlaw(code));

export function encodeUlaw(pcm: Int16Array): Uint8Array {
  return encode(pcm, ULAW_ENCODE);
}

export function decodeUlaw(bytes: Uint8Array): Int16Array {
  return decode(bytes, ULAW_DECODE);
}

export function encodeAlaw(pcm: Int16Array): Uint8Array {
  return encode(pcm, ALAW_ENCODE);
}

export function decodeAlaw(bytes: Uint8Array): Int16Array {
  return decode(bytes, ALAW_DECODE);
}

function encode(pcm: Int16Array, table: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(pcm.length);
  for (let at = 0; at < pcm.length; at += 1) bytes[at] = table[(pcm[at] ?? 0) & 0xffff] ?? 0;
  return bytes;
}

function decode(bytes: Uint8Array, table: Int16Array): Int16Array {
  const pcm = new Int16Array(bytes.length);
  for (let at = 0; at < bytes.length; at += 1) pcm[at] = table[bytes[at] ?? 0] ?? 0;
  return pcm;
}

/** Indexed by the sample's 16 bits, read as an unsigned number. */
function encodeTable(compress: (sample: number) => number): Uint8Array {
  return Uint8Array.from({ length: 65536 }, (_, bits) => compress((bits << 16) >> 16));
}

/** 14-bit magnitude plus a bias of 33, as segment (3 bits) and step (4 bits), all inverted (G.711 table 2a). */
function compressUlaw(sample: number): number {
  const isNegative = sample < 0;
  // One's complement, as G.191 has it: no overflow at -32768, and -1 falls where 0 does.
  const biased = Math.min(((isNegative ? ~sample : sample) >> 2) + 33, 0x1fff);
  const segment = 31 - Math.clz32(biased >> 5);
  const step = (biased >> (segment + 1)) & 0x0f;
  return ((isNegative ? 0 : 0x80) | ((7 - segment) << 4) | (0x0f - step)) & 0xff;
}

function expandUlaw(code: number): number {
  const inverted = ~code;
  const segment = (inverted >> 4) & 0x07;
  const step = inverted & 0x0f;
  const magnitude = (((step << 1) + 33) << segment) - 33;
  return (code & 0x80) === 0 ? -magnitude * 4 : magnitude * 4;
}

/** 12-bit magnitude as segment and step, every other bit inverted (G.711 table 1a and its note 2: 0x55). */
function compressAlaw(sample: number): number {
  const isNegative = sample < 0;
  const magnitude = (isNegative ? ~sample : sample) >> 4;
  const segment = magnitude < 16 ? 0 : 31 - Math.clz32(magnitude >> 4) + 1;
  const step = segment === 0 ? magnitude : (magnitude >> (segment - 1)) & 0x0f;
  return ((isNegative ? 0 : 0x80) | (segment << 4) | step) ^ 0x55;
}

function expandAlaw(code: number): number {
  const plain = code ^ 0x55;
  const segment = (plain >> 4) & 0x07;
  const step = plain & 0x0f;
  // The middle of the step; segments above the first carry an implicit leading one.
  const magnitude = segment === 0 ? (step << 4) + 8 : ((step << 4) + 0x108) << (segment - 1);
  return (plain & 0x80) === 0 ? -magnitude : magnitude;
}
