/** How strong each part of a sound's spectrum is, as a listener would measure it. */
import { Fourier } from "../../src/audio/analysis/fourier.ts";

const SIZE = 1024;

/** Power between two frequencies, dB below full scale, over all of the sound: windows of 1024 samples (Hann), half of each in the next. */
export function bandPowerDb(
  samples: Int16Array,
  sampleRate: number,
  band: readonly [number, number],
): number {
  const fourier = new Fourier(SIZE);
  const [from, to] = band.map((hz) => Math.round((hz * SIZE) / sampleRate)) as [number, number];
  let power = 0;
  let windows = 0;
  for (let at = 0; at + SIZE <= samples.length; at += SIZE / 2, windows += 1) {
    const real = Float64Array.from({ length: SIZE }, (_, index) => {
      const window = 0.5 - 0.5 * Math.cos((2 * Math.PI * index) / SIZE);
      return ((samples[at + index] ?? 0) / 32_768) * window;
    });
    const imaginary = new Float64Array(SIZE);
    fourier.transform(real, imaginary);
    for (let bin = from; bin < Math.min(to, SIZE / 2); bin += 1) {
      // Both halves of the spectrum; the window takes 3/8 of the power.
      power += (2 * ((real[bin] ?? 0) ** 2 + (imaginary[bin] ?? 0) ** 2)) / (SIZE * SIZE * 0.375);
    }
  }
  return 10 * Math.log10(power / Math.max(1, windows) + 1e-15);
}

/** The same noise each time, of all frequencies alike. `level`: 1 is full scale. */
export function whiteNoise(sampleRate: number, seconds: number, level: number): Int16Array {
  let state = 7;
  return Int16Array.from({ length: Math.round(sampleRate * seconds) }, () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.round((state / 2 ** 31 - 1) * level * 32_767);
  });
}
