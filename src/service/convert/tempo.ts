/**
 * Plays a recording faster or slower, as a tape does: its pitch and formants move, too. What follows moves both to the
 * other voice's from where they are then (transformer.ts), so that only the length is left changed.
 */
export class Tempo {
  readonly #speed: number;
  #last = 0;
  /** Where the next sample stands, in samples after `#last`. */
  #position = 1;

  /** `speed` above 0; 1 leaves the samples as they are. */
  constructor(speed: number) {
    this.#speed = speed;
  }

  push(samples: Float32Array): Float32Array {
    if (this.#speed === 1) return samples;
    const made: number[] = [];
    for (; this.#position < samples.length + 1; this.#position += this.#speed) {
      const whole = Math.floor(this.#position);
      const before = whole === 0 ? this.#last : (samples[whole - 1] ?? 0);
      const part = this.#position - whole;
      if (part > 0 && whole >= samples.length) break;
      made.push(before + part * ((samples[whole] ?? before) - before));
    }
    this.#position -= samples.length;
    this.#last = samples.at(-1) ?? this.#last;
    return Float32Array.from(made);
  }
}
