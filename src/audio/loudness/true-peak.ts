/**
 * The peak of the sound that samples stand for, which may lie between two of them: what is played or resampled clips there.
 * Four places a sample, as ITU-R BS.1770 asks for.
 */

/** A place is computed from so many samples on each side. */
export const TRUE_PEAK_REACH = 8;
/** No place is higher than the highest sample around it by more than this factor. */
export const MOST_BETWEEN = 2.5;

const PHASES = [0.25, 0.5, 0.75].map(tapsFor);

/** The highest place from sample `at` up to the next one. Beyond its ends `samples` are silent. */
export function truePeakAt(samples: Float32Array, at: number): number {
  let peak = Math.abs(samples[at] ?? 0);
  const from = at - TRUE_PEAK_REACH + 1;
  for (const taps of PHASES) {
    let value = 0;
    for (let tap = 0; tap < taps.length; tap += 1) value += (taps[tap] ?? 0) * (samples[from + tap] ?? 0);
    peak = Math.max(peak, Math.abs(value));
  }
  return peak;
}

/** A sinc at `phase` between two samples, in a Hann window: sums to 1. */
function tapsFor(phase: number): Float64Array {
  const taps = Float64Array.from({ length: 2 * TRUE_PEAK_REACH }, (_, tap) => {
    const x = tap - TRUE_PEAK_REACH + 1 - phase;
    const window = Math.cos((Math.PI * x) / (2 * TRUE_PEAK_REACH)) ** 2;
    return (Math.sin(Math.PI * x) / (Math.PI * x)) * window;
  });
  const sum = taps.reduce((total, tap) => total + tap, 0);
  return taps.map((tap) => tap / sum);
}
