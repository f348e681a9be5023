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
    this.#sines = Float64Array.from(angles, (angle) => -Math.sin(angle));
  }

  /** Both of `size` values. Not scaled; with the two arrays changed over it is the inverse, times `size`. */
  transform(real: Float64Array, imaginary: Float64Array): void {
    reverseBits(real);
    reverseBits(imaginary);
    let length = 2;
    for (; length * 2 <= this.#size; length *= 4) this.#twoStages(real, imaginary, length);
    if (length <= this.#size) this.#lastStage(real, imaginary);
  }

  /** Joins parts of half of `length`, and what that makes to parts of twice `length`: values are read and written once for both. */
  #twoStages(real: Float64Array, imaginary: Float64Array, length: number): void {
    const size = this.#size;
    const cosines = this.#cosines;
    const sines = this.#sines;
    const half = length / 2;
    const stride = size / length / 2;
    for (let step = 0; step < half; step += 1) {
      const cosFirst = cosines[2 * step * stride] as number;
      const sinFirst = sines[2 * step * stride] as number;
      const cosLow = cosines[step * stride] as number;
      const sinLow = sines[step * stride] as number;
      const cosHigh = cosines[(step + half) * stride] as number;
      const sinHigh = sines[(step + half) * stride] as number;
      for (let at0 = step; at0 < size; at0 += 2 * length) {
        const at1 = at0 + half;
        const at2 = at1 + half;
        const at3 = at2 + half;
        const real1 = (real[at1] as number) * cosFirst - (imaginary[at1] as number) * sinFirst;
        const imaginary1 = (real[at1] as number) * sinFirst + (imaginary[at1] as number) * cosFirst;
        const real3 = (real[at3] as number) * cosFirst - (imaginary[at3] as number) * sinFirst;
        const imaginary3 = (real[at3] as number) * sinFirst + (imaginary[at3] as number) * cosFirst;
        const lowReal = (real[at0] as number) + real1;
        const lowImaginary = (imaginary[at0] as number) + imaginary1;
        const highReal = (real[at0] as number) - real1;
        const highImaginary = (imaginary[at0] as number) - imaginary1;
        const nextReal = (real[at2] as number) + real3;
        const nextImaginary = (imaginary[at2] as number) + imaginary3;
        const lastReal = (real[at2] as number) - real3;
        const lastImaginary = (imaginary[at2] as number) - imaginary3;
        const real2 = nextReal * cosLow - nextImaginary * sinLow;
        const imaginary2 = nextReal * sinLow + nextImaginary * cosLow;
        const turnedReal = lastReal * cosHigh - lastImaginary * sinHigh;
        const turnedImaginary = lastReal * sinHigh + lastImaginary * cosHigh;
        real[at0] = lowReal + real2;
        imaginary[at0] = lowImaginary + imaginary2;
        real[at1] = highReal + turnedReal;
        imaginary[at1] = highImaginary + turnedImaginary;
        real[at2] = lowReal - real2;
        imaginary[at2] = lowImaginary - imaginary2;
        real[at3] = highReal - turnedReal;
        imaginary[at3] = highImaginary - turnedImaginary;
      }
    }
  }

  /** Joins two halves to the whole. */
  #lastStage(real: Float64Array, imaginary: Float64Array): void {
    const half = this.#size / 2;
    for (let low = 0; low < half; low += 1) {
      const high = low + half;
      const cos = this.#cosines[low] as number;
      const sin = this.#sines[low] as number;
      const a = (real[high] as number) * cos - (imaginary[high] as number) * sin;
      const b = (real[high] as number) * sin + (imaginary[high] as number) * cos;
      real[high] = (real[low] as number) - a;
      imaginary[high] = (imaginary[low] as number) - b;
      real[low] = (real[low] as number) + a;
      imaginary[low] = (imaginary[low] as number) + b;
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
