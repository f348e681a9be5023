/** A stretch of a stream of samples under its own numbering: grows at the end, is forgotten at the beginning. */

const FIRST_CAPACITY = 16_384;

export class SampleWindow {
  #samples = new Float32Array(FIRST_CAPACITY);
  #base = 0;
  #end = 0;

  /** Number of the first sample that is still there. */
  get base(): number {
    return this.#base;
  }

  /** One past the last sample. */
  get end(): number {
    return this.#end;
  }

  push(samples: Float32Array): void {
    this.growTo(this.#end + samples.length);
    this.#samples.set(samples, this.#end - samples.length - this.#base);
  }

  /** Lengthens the stretch with silence up to `end`. */
  growTo(end: number): void {
    if (end <= this.#end) return;
    const needed = end - this.#base;
    if (needed > this.#samples.length) {
      const larger = new Float32Array(Math.max(needed, this.#samples.length * 2));
      larger.set(this.#samples.subarray(0, this.#end - this.#base));
      this.#samples = larger;
    }
    this.#end = end;
  }

  /** Silence outside of the stretch. */
  at(index: number): number {
    return index < this.#base || index >= this.#end ? 0 : (this.#samples[index - this.#base] ?? 0);
  }

  /** Adds to a sample that is there; what lies outside is dropped. */
  add(index: number, value: number): void {
    if (index < this.#base || index >= this.#end) return;
    const place = index - this.#base;
    this.#samples[place] = (this.#samples[place] ?? 0) + value;
  }

  /** A copy; silence outside of the stretch. */
  slice(from: number, to: number): Float32Array {
    const copy = new Float32Array(Math.max(0, to - from));
    const first = Math.max(from, this.#base);
    const last = Math.min(to, this.#end);
    if (last > first) copy.set(this.#samples.subarray(first - this.#base, last - this.#base), first - from);
    return copy;
  }

  /** Forgets everything before `index`. */
  dropBefore(index: number): void {
    const count = Math.min(index, this.#end) - this.#base;
    if (count <= 0) return;
    this.#samples.copyWithin(0, count, this.#end - this.#base);
    this.#samples.fill(0, this.#end - this.#base - count, this.#end - this.#base);
    this.#base += count;
  }
}
