/** Watches whether the end of a stream of samples is silent. */

/** Samples below this (of 32768, -60 dB) are silent. */
const QUIET_LEVEL = 33;

export class QuietTail {
  readonly #length: number;
  #quiet: number;

  /** `length`: samples at the end that count; before anything is pushed they are silent. */
  constructor(length: number) {
    this.#length = length;
    this.#quiet = length;
  }

  /** Whether the last `length` samples are all silent. */
  get isQuiet(): boolean {
    return this.#quiet >= this.#length;
  }

  push(pcm: Int16Array): void {
    const first = Math.max(0, pcm.length - this.#length);
    for (let at = pcm.length - 1; at >= first; at -= 1) {
      if (Math.abs(pcm[at] ?? 0) >= QUIET_LEVEL) {
        this.#quiet = pcm.length - 1 - at;
        return;
      }
    }
    this.#quiet += pcm.length;
  }

  reset(): void {
    this.#quiet = this.#length;
  }
}
