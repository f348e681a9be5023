/**
 * Bytes of G.711 or PCM on their way through: pieces of any size in, whole samples out, with silence taken off either
 * end and fades.
 *
 *   bytes   |taken...|here.............|free....|   what is here stands in one row; it moves up when the end is reached
 *
 * Pieces are copied in: what an HTTP client hands over is then soon garbage, and dies young. Kept, it grows old, and what
 * is old is found by going through the memory of every session.
 */
import { riseGain, scaleSamples } from "../analysis/fade.ts";
import { isSoundAt, SilenceMeter } from "../analysis/silence.ts";
import { bytesPerSample, type SampleCodec } from "../codecs/samples.ts";

/** The store grows in multiples of this. */
const GRAIN_BYTES = 16_384;
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
  #store: Uint8Array;
  /** What is here, in `#store`; it may end inside a sample. */
  #start = 0;
  #end = 0;
  /** What the next samples taken get. */
  #rise: Rise | null = null;

  /** `store`: memory that another one has done with. */
  constructor(codec: SampleCodec, store: Uint8Array = NO_BYTES) {
    this.#store = store;
    this.#codec = codec;
    this.#width = bytesPerSample(codec);
    this.#meter = new SilenceMeter(codec);
  }

  /** Whole samples here. */
  get samples(): number {
    return Math.floor((this.#end - this.#start) / this.#width);
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
    if (this.#end + bytes.length > this.#store.length) this.#makeRoom(bytes.length);
    this.#store.set(bytes, this.#end);
    this.#end += bytes.length;
  }

  /** The next `count` samples (at most `samples`): a view that holds until the next push. */
  take(count: number): Uint8Array {
    const from = this.#start;
    this.#start += count * this.#width;
    const bytes = this.#store.subarray(from, this.#start);
    if (this.#rise !== null) this.#raise(bytes, this.#rise);
    return bytes;
  }

  /** What follows: at most `count` samples, without taking them; a view as `take` gives. */
  peek(count: number): Uint8Array {
    return this.#store.subarray(this.#start, this.#start + Math.min(count, this.samples) * this.#width);
  }

  /** Drops from the front, before anything was taken: at most `leadingSilence`. */
  dropLeading(count: number): void {
    this.#meter.cutLeading(count);
    this.#start += count * this.#width;
  }

  /** Drops whole samples from the end: at most `trailingSilence` and `samples`. */
  dropTrailing(count: number): void {
    this.#meter.cutTrailing(count);
    const half = this.#halfBytes;
    const to = this.#end - half - count * this.#width;
    this.#store.copyWithin(to, this.#end - half, this.#end);
    this.#end = to + half;
  }

  /** The next samples taken rise from nothing over `length` samples, if the first of them is a sound. */
  fadeIn(length: number): void {
    this.#rise = length > 0 ? { length, done: 0 } : null;
  }

  /** The last `length` samples here, or all if there are fewer, fall to nothing, if the last is a sound. */
  fadeOut(length: number): void {
    const count = Math.min(length, this.samples);
    if (count <= 0 || this.#meter.trailingSamples > 0) return;
    const to = this.#end - this.#halfBytes;
    const end = this.#store.subarray(to - count * this.#width, to);
    end.set(scaleSamples(this.#codec, end, (index) => riseGain(count - 1 - index, count)));
    this.#meter.replaceEnd(end);
  }

  /** Forgets everything; what was taken is no longer good when the memory that it gives back is used again. */
  clear(): Uint8Array {
    const store = this.#store;
    this.#store = NO_BYTES;
    this.#start = 0;
    this.#end = 0;
    this.#rise = null;
    return store;
  }

  get #halfBytes(): number {
    return (this.#end - this.#start) % this.#width;
  }

  #raise(bytes: Uint8Array, rise: Rise): void {
    const { length, done } = rise;
    const isNeeded = done > 0 || isSoundAt(this.#codec, bytes, 0);
    const count = Math.min(length - done, bytes.length / this.#width);
    rise.done += count;
    if (!isNeeded || rise.done === length) this.#rise = null;
    if (!isNeeded) return;
    const start = bytes.subarray(0, count * this.#width);
    start.set(scaleSamples(this.#codec, start, (index) => riseGain(done + index, length)));
  }

  /** So that `bytes` more fit behind what is here; that stays at an even address, where samples of 16 bits can be read. */
  #makeRoom(bytes: number): void {
    const here = this.#end - this.#start;
    const needed = here + bytes;
    if (needed <= this.#store.length) this.#store.copyWithin(0, this.#start, this.#end);
    else {
      // By half at least: seconds of 48 kHz would be copied for each piece that comes.
      const size = Math.max(needed, this.#store.length * 1.5);
      const store = new Uint8Array(Math.ceil(size / GRAIN_BYTES) * GRAIN_BYTES);
      store.set(this.#store.subarray(this.#start, this.#end));
      this.#store = store;
    }
    this.#start = 0;
    this.#end = here;
  }
}
