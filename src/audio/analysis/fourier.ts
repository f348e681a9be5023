/** The discrete Fourier transform of complex values, in place (radix 2). */
export class Fourier {
  readonly #size: number;
  readonly #cosines: Float64Array;
  readonly #sines: Float64Array;

  /** `size`: a power of two. */
  constructor(size: number) {
    this.#size = size;
    const angles = Array.from({ length: size / 2 }, (_, step) => (2 * Math.PI * step) / size);
    this.#cosines = Float64Array.from(angles, Math.cos);
    this.#sines = Float64Array.from(angles, Math.sin);
  }

  /** Both of `size` values. Not scaled; with the two arrays changed over it is the inverse, times `size`. */
  transform(real: Float64Array, imaginary: Float64Array): void {
    const size = this.#size;
    reverseBits(real);
    reverseBits(imaginary);
    for (let length = 2; length <= size; length *= 2) {
      const half = length / 2;
      for (let step = 0; step < half; step += 1) {
        const cos = this.#cosines[step * (size / length)] ?? 0;
        const sin = -(this.#sines[step * (size / length)] ?? 0);
        for (let low = step; low < size; low += length) {
          const high = low + half;
          const a = (real[high] ?? 0) * cos - (imaginary[high] ?? 0) * sin;
          const b = (real[high] ?? 0) * sin + (imaginary[high] ?? 0) * cos;
          real[high] = (real[low] ?? 0) - a;
          imaginary[high] = (imaginary[low] ?? 0) - b;
          real[low] = (real[low] ?? 0) + a;
          imaginary[low] = (imaginary[low] ?? 0) + b;
        }
      }
    }
  }
}

function reverseBits(values: Float64Array): void {
  for (let index = 1, reversed = 0; index < values.length; index += 1) {
    let bit = values.length >> 1;
    for (; reversed & bit; bit >>= 1) reversed ^= bit;
    reversed ^= bit;
    if (index >= reversed) continue;
    const held = values[index] ?? 0;
    values[index] = values[reversed] ?? 0;
    values[reversed] = held;
  }
}
