/**
 * Bytes of G.711 or PCM on their way through: pieces of any size in, whole samples out, with silence taken off either
 * end and fades. Pieces are kept as views and never written to: they may share memory with other audio.
 */
import { riseGain, scaleSamples } from "./seam.ts";
import { bytesPerSample, isSoundAt, type SampleCodec, SilenceMeter } from "./silence.ts";

/** Used-up places at the front of the array of pieces that are left before it is moved up: each time is quadratic. */
const MIN_USED_PLACES = 64;
const NO_BYTES = new Uint8Array(0);

interface Rise {
  /** Samples of the whole rise. */
  readonly length: number;
  /** Samples of it that were taken. */
  done: number;
}

export class SampleQueue {
  readonly #codec: SampleCodec;
  readonly #width: number;
  readonly #meter: SilenceMeter;
  /** From `#first` on; the last may end inside a sample. */
  #pieces: Uint8Array[] = [];
  #first = 0;
  #bytes = 0;
  /** What the next samples taken get. */
  #rise: Rise | null = null;

  constructor(codec: SampleCodec) {
    this.#codec = codec;
    this.#width = bytesPerSample(codec);
    this.#meter = new SilenceMeter(codec);
  }

  /** Whole samples here. */
  get samples(): number {
    return Math.floor(this.#bytes / this.#width);
  }

  /** Whether the bytes end inside a sample. */
  get isInsideSample(): boolean {
    return this.#bytes % this.#width !== 0;
  }

  /** Whether any sample pushed was a sound. */
  get hasSound(): boolean {
    return this.#meter.hasSound;
  }

  /** Silent samples before the first sound of all that was pushed, without those dropped. */
  get leadingSilence(): number {
    return this.#meter.leadingSamples;
  }

  /** Silent samples behind the last sound of all that was pushed, taken or not, without those dropped. */
  get trailingSilence(): number {
    return this.#meter.trailingSamples;
  }

  push(bytes: Uint8Array): void {
    this.#meter.push(bytes);
    this.#append(bytes);
  }

  /** The next `count` samples (at most `samples`) in one piece: a view of what was pushed where it is one there. */
  take(count: number): Uint8Array {
    const bytes = this.#shift(count * this.#width);
    return this.#rise === null ? bytes : this.#raise(bytes, this.#rise);
  }

  /** Drops from the front, before anything was taken: at most `leadingSilence`. */
  dropLeading(count: number): void {
    this.#meter.cutLeading(count);
    this.#shift(count * this.#width);
  }

  /** Drops whole samples from the end: at most `trailingSilence` and `samples`. */
  dropTrailing(count: number): void {
    this.#meter.cutTrailing(count);
    const half = this.#pop(this.#bytes % this.#width);
    this.#pop(count * this.#width);
    this.#append(half);
  }

  /** The next samples taken rise from nothing over `length` samples, if the first of them is a sound. */
  fadeIn(length: number): void {
    this.#rise = length > 0 ? { length, done: 0 } : null;
  }

  /** The last `length` samples here, or all if there are fewer, fall to nothing, if the last is a sound. */
  fadeOut(length: number): void {
    const count = Math.min(length, this.samples);
    if (count <= 0 || this.#meter.trailingSamples > 0) return;
    const half = this.#pop(this.#bytes % this.#width);
    const end = this.#pop(count * this.#width);
    const faded = scaleSamples(this.#codec, end, (index) => riseGain(count - 1 - index, count));
    this.#meter.replaceEnd(faded);
    this.#append(faded);
    this.#append(half);
  }

  clear(): void {
    this.#pieces = [];
    this.#first = 0;
    this.#bytes = 0;
    this.#rise = null;
  }

  #append(bytes: Uint8Array): void {
    if (bytes.length === 0) return;
    this.#pieces.push(bytes);
    this.#bytes += bytes.length;
  }

  #raise(bytes: Uint8Array, rise: Rise): Uint8Array {
    const { length, done } = rise;
    const isNeeded = done > 0 || isSoundAt(this.#codec, bytes, 0);
    const count = Math.min(length - done, bytes.length / this.#width);
    rise.done += count;
    if (!isNeeded || rise.done === length) this.#rise = null;
    if (!isNeeded) return bytes;
    const start = bytes.subarray(0, count * this.#width);
    const raised = new Uint8Array(bytes);
    raised.set(scaleSamples(this.#codec, start, (index) => riseGain(done + index, length)));
    return raised;
  }

  #shift(count: number): Uint8Array {
    if (count === 0) return NO_BYTES;
    this.#bytes -= count;
    const first = this.#pieces[this.#first];
    if (first !== undefined && first.length >= count) return this.#shiftWithin(first, count);
    const joined = new Uint8Array(count);
    for (let offset = 0; offset < count; ) {
      const piece = this.#pieces[this.#first];
      if (piece === undefined) throw new RangeError("Can't take samples: more are asked for than are here");
      const part = this.#shiftWithin(piece, Math.min(piece.length, count - offset));
      joined.set(part, offset);
      offset += part.length;
    }
    return joined;
  }

  /** `count` bytes of the first piece. */
  #shiftWithin(piece: Uint8Array, count: number): Uint8Array {
    if (piece.length > count) {
      this.#pieces[this.#first] = piece.subarray(count);
      return piece.subarray(0, count);
    }
    this.#pieces[this.#first] = NO_BYTES;
    this.#first += 1;
    if (this.#first >= Math.max(MIN_USED_PLACES, this.#pieces.length / 2)) {
      this.#pieces.splice(0, this.#first);
      this.#first = 0;
    }
    return piece;
  }

  /** The last `count` bytes, as a copy. */
  #pop(count: number): Uint8Array {
    const popped = new Uint8Array(count);
    this.#bytes -= count;
    for (let left = count; left > 0; ) {
      const piece = this.#pieces.pop();
      if (piece === undefined) throw new RangeError("Can't drop samples: more are asked for than are here");
      const part = Math.min(piece.length, left);
      left -= part;
      popped.set(piece.subarray(piece.length - part), left);
      if (part < piece.length) this.#pieces.push(piece.subarray(0, piece.length - part));
    }
    return popped;
  }
}
