/** Silence in the bytes of G.711 and PCM: how much there is at either end, and how to make some. */

import { decodeAlaw, decodeUlaw } from "../codecs/g711.ts";
import { bytesPerSample, encodeSamples, type SampleCodec } from "../codecs/samples.ts";

/** Samples within +-100 of 32768 are silence: about -50 dB. */
export const SILENCE_LEVEL = 100;

/** `samples` of zero; A-law has no zero, so its nearest level (+8). */
export function silenceBytes(codec: SampleCodec, samples: number): Uint8Array {
  return encodeSamples(codec, new Int16Array(samples));
}

/** 1 for the codes of G.711 that are above the silence level; PCM needs no table. */
const SOUND_CODES: Readonly<Record<SampleCodec, Uint8Array | null>> = {
  ulaw: soundCodes(decodeUlaw),
  alaw: soundCodes(decodeAlaw),
  pcm: null,
};

function soundCodes(decode: (bytes: Uint8Array) => Int16Array): Uint8Array {
  const codes = Uint8Array.from({ length: 256 }, (_, code) => code);
  return Uint8Array.from(decode(codes), (sample) => (Math.abs(sample) > SILENCE_LEVEL ? 1 : 0));
}

/** Where in the bytes to look: from the sample that begins at `from`, at most `count` of them. */
interface Reach {
  readonly from: number;
  readonly count: number;
  readonly isBackward: boolean;
}

/**
 * How many samples are silent before there is one above the silence level; `count` where there is none. Looks from
 * sample to sample, forward or backward, at any address; all of the samples have to lie in `bytes`.
 */
export function silentRun(codec: SampleCodec, bytes: Uint8Array, { from, count, isBackward }: Reach): number {
  const table = SOUND_CODES[codec];
  const step = bytesPerSample(codec) * (isBackward ? -1 : 1);
  let at = from;
  let run = 0;
  if (table !== null) {
    for (; run < count && table[bytes[at] ?? 0] === 0; at += step) run += 1;
    return run;
  }
  // Byte by byte: the samples of a piece may begin at an odd address, where no Int16Array can.
  for (; run < count; at += step) {
    const sample = (((bytes[at + 1] ?? 0) << 24) >> 16) | (bytes[at] ?? 0);
    if (sample > SILENCE_LEVEL || sample < -SILENCE_LEVEL) return run;
    run += 1;
  }
  return run;
}

/** Whether the sample that begins at byte `at` is above the silence level. */
export function isSoundAt(codec: SampleCodec, bytes: Uint8Array, at: number): boolean {
  return silentRun(codec, bytes, { from: at, count: 1, isBackward: false }) === 0;
}

/**
 * Counts the silence at both ends of a stream of bytes while it comes, whatever way it is split. A piece is looked
 * at from its end to its last sound and, until the stream has sounded, from its start to its first: no byte twice.
 */
export class SilenceMeter {
  readonly #codec: SampleCodec;
  readonly #width: number;
  /** The low byte of a sample whose high byte has not come. */
  #half: number | null = null;
  #leading = 0;
  #trailing = 0;
  #hasSound = false;

  constructor(codec: SampleCodec) {
    this.#codec = codec;
    this.#width = bytesPerSample(codec);
  }

  /** Whether any sample was above the silence level. */
  get hasSound(): boolean {
    return this.#hasSound;
  }

  /** Samples before the first sound; all of them while there is none. */
  get leadingSamples(): number {
    return this.#leading;
  }

  /** Samples behind the last sound; all of them while there is none. */
  get trailingSamples(): number {
    return this.#trailing;
  }

  push(bytes: Uint8Array): void {
    let start = 0;
    if (this.#half !== null && bytes.length > 0) {
      this.#measure(Uint8Array.of(this.#half, bytes[0] ?? 0), 0, 2);
      this.#half = null;
      start = 1;
    }
    const end = bytes.length - ((bytes.length - start) % this.#width);
    this.#measure(bytes, start, end);
    if (end < bytes.length) this.#half = bytes[end] ?? 0;
  }

  /** Samples were taken off the leading silence. */
  cutLeading(samples: number): void {
    this.#leading -= samples;
    if (!this.#hasSound) this.#trailing -= samples;
  }

  /** Samples were taken off the trailing silence. */
  cutTrailing(samples: number): void {
    this.#trailing -= samples;
    if (!this.#hasSound) this.#leading -= samples;
  }

  /** The last samples, all whole, are now these. The first of the stream are taken to be what they were. */
  replaceEnd(bytes: Uint8Array): void {
    this.#trailing = this.#runBehind(bytes, bytes.length, bytes.length / this.#width);
  }

  #measure(bytes: Uint8Array, start: number, end: number): void {
    const count = (end - start) / this.#width;
    const behind = this.#runBehind(bytes, end, count);
    if (behind === count) {
      this.#trailing += count;
      if (!this.#hasSound) this.#leading += count;
      return;
    }
    this.#trailing = behind;
    if (this.#hasSound) return;
    this.#hasSound = true;
    this.#leading += silentRun(this.#codec, bytes, { from: start, count, isBackward: false });
  }

  /** Silent samples right before byte `end`, of `count`. */
  #runBehind(bytes: Uint8Array, end: number, count: number): number {
    return silentRun(this.#codec, bytes, { from: end - this.#width, count, isBackward: true });
  }
}
