/**
 * How loud what a listener got is, and how high its peaks are: EBU R128 with the filters of ITU-R BS.1770's table for 48 kHz.
 * Written without the gateway's own meter, and checked against ffmpeg's in test/unit/audio/loudness/.
 */

const RATE = 48_000;
const FULL_SCALE = 32_768;
/** [b0, b1, b2, a1, a2], as the standard prints them. */
const STAGES = [
  [1.53512485958697, -2.69169618940638, 1.19839281085285, -1.69065929318241, 0.73248077421585],
  [1, -2, 1, -1.99004745483398, 0.99007225036621],
] as const;
/** Samples on each side that a place between two is computed from. */
const REACH = 16;

export interface Measured {
  /** Gated loudness of all of it, LUFS. */
  readonly lufs: number;
  readonly truePeakDb: number;
}

export function measureLoudness(samples: Int16Array, sampleRate: number): Measured {
  const wide = upsampled(
    Float64Array.from(samples, (sample) => sample / FULL_SCALE),
    Math.max(1, RATE / sampleRate),
  );
  const peaks = sampleRate < RATE / 3 ? wide : upsampled(wide, 4);
  const peak = peaks.reduce((most, sample) => Math.max(most, Math.abs(sample)), 0);
  return { lufs: gatedLufs(STAGES.reduce(filtered, wide)), truePeakDb: 20 * Math.log10(peak) };
}

function filtered(samples: Float64Array, [b0, b1, b2, a1, a2]: (typeof STAGES)[number]): Float64Array {
  let [x1, x2, y1, y2] = [0, 0, 0, 0];
  return samples.map((x) => {
    const y = b0 * x + b1 * x1 + b2 * x2 - a1 * y1 - a2 * y2;
    [x2, x1, y2, y1] = [x1, x, y1, y];
    return y;
  });
}

function gatedLufs(samples: Float64Array): number {
  const [block, step] = [RATE * 0.4, RATE * 0.1];
  const energies: number[] = [];
  for (let at = 0; at + block <= samples.length; at += step) {
    let sum = 0;
    for (const sample of samples.subarray(at, at + block)) sum += sample * sample;
    energies.push(sum / block);
  }
  const heard = energies.filter((energy) => lufs(energy) > -70);
  return lufs(mean(heard.filter((energy) => lufs(energy) > lufs(mean(heard)) - 10)));
}

function lufs(energy: number): number {
  return -0.691 + 10 * Math.log10(energy);
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

function upsampled(samples: Float64Array, factor: number): Float64Array {
  if (factor === 1) return samples;
  const taps = Array.from({ length: factor }, (_, phase) =>
    Float64Array.from({ length: 2 * REACH }, (_, tap) => {
      const x = tap - REACH + 1 - phase / factor;
      const sinc = x === 0 ? 1 : Math.sin(Math.PI * x) / (Math.PI * x);
      return sinc * Math.cos((Math.PI * x) / (2 * REACH)) ** 2;
    }),
  );
  // Silence at both ends, so that the loop need not look where it is: it takes most of the time.
  const padded = new Float64Array(samples.length + 2 * REACH);
  padded.set(samples, REACH - 1);
  const wide = new Float64Array(samples.length * factor);
  for (const [phase, weights] of taps.entries()) {
    for (let at = 0; at < samples.length; at += 1) {
      let sum = 0;
      for (let tap = 0; tap < 2 * REACH; tap += 1) {
        sum += (weights[tap] as number) * (padded[at + tap] as number);
      }
      wide[at * factor + phase] = sum;
    }
  }
  return wide;
}
