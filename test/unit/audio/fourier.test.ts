import { describe, expect, it } from "vitest";
import { Fourier } from "../../../src/audio/analysis/fourier.ts";

describe("Fourier", () => {
  // Stages are joined in pairs: an odd number of them leaves one.
  it.each([1, 2, 4, 8, 16, 32])(
    "transform() of %i values: is the sum that defines it, and its inverse with the arrays changed over",
    (size) => {
      const values = Array.from({ length: size }, (_, at) => [Math.sin(at * at), Math.cos(3 * at)] as const);
      const real = Float64Array.from(values, ([a]) => a);
      const imaginary = Float64Array.from(values, ([, b]) => b);
      const fourier = new Fourier(size);
      fourier.transform(real, imaginary);
      for (let bin = 0; bin < size; bin += 1) {
        let [a, b] = [0, 0];
        for (const [at, [x, y]] of values.entries()) {
          const angle = (-2 * Math.PI * bin * at) / size;
          a += x * Math.cos(angle) - y * Math.sin(angle);
          b += x * Math.sin(angle) + y * Math.cos(angle);
        }
        expect(real[bin]).toBeCloseTo(a, 9);
        expect(imaginary[bin]).toBeCloseTo(b, 9);
      }
      fourier.transform(imaginary, real);
      for (const [at, [x, y]] of values.entries()) {
        expect((real[at] ?? 0) / size).toBeCloseTo(x, 9);
        expect((imaginary[at] ?? 0) / size).toBeCloseTo(y, 9);
      }
    },
  );
});
