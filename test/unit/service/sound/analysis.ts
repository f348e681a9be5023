/** What tests measure sounds with. Samples are -1..1 at 44.1 kHz. */
import { planSound, type SoundSpec } from "../../../../src/service/sound/plan.ts";
import { renderSound } from "../../../../src/service/sound/render.ts";

export const RATE = 44_100;

/** By its words alone, unless said otherwise. */
export function make(text: string, options: Partial<Omit<SoundSpec, "text">> = {}): Int16Array {
  const plan = planSound({ text, durationSeconds: null, influence: 1, isLooped: false, ...options });
  const blocks = [...renderSound(plan)];
  const all = new Int16Array(blocks.reduce((sum, block) => sum + block.length, 0));
  let at = 0;
  for (const block of blocks) {
    all.set(block, at);
    at += block.length;
  }
  return all;
}

export function rms(samples: ArrayLike<number>, from = 0, to = samples.length): number {
  let sum = 0;
  for (let at = from; at < to; at += 1) sum += ((samples[at] ?? 0) / 32_768) ** 2;
  return Math.sqrt(sum / Math.max(1, to - from));
}

/** The level of each stretch. */
export function envelope(samples: Int16Array, seconds: number): number[] {
  const size = Math.round(seconds * RATE);
  const count = Math.floor(samples.length / size);
  return Array.from({ length: count }, (_, index) => rms(samples, index * size, (index + 1) * size));
}

const SIZE = 4096;
export const BIN_HZ = RATE / SIZE;

/** Mean power of each bin of BIN_HZ, windows of 93 ms. */
export function spectrum(
  samples: Int16Array,
  fromSeconds = 0,
  toSeconds = samples.length / RATE,
): Float64Array {
  const power = new Float64Array(SIZE / 2);
  const end = Math.round(toSeconds * RATE);
  for (let from = Math.round(fromSeconds * RATE); from < end; from += SIZE / 2) {
    const re = new Float64Array(SIZE);
    const im = new Float64Array(SIZE);
    for (let at = 0; at < SIZE && from + at < end; at += 1) {
      re[at] = ((samples[from + at] ?? 0) / 32_768) * (0.5 - 0.5 * Math.cos((2 * Math.PI * at) / SIZE));
    }
    transform(re, im);
    for (let bin = 0; bin < power.length; bin += 1) {
      power[bin] = (power[bin] ?? 0) + (re[bin] ?? 0) ** 2 + (im[bin] ?? 0) ** 2;
    }
  }
  return power;
}

/** The strongest frequency, Hz. */
export function peakHz(samples: Int16Array, fromSeconds?: number, toSeconds?: number): number {
  const power = spectrum(samples, fromSeconds, toSeconds);
  return power.reduce((best, value, bin) => (value > (power[best] ?? 0) ? bin : best), 1) * BIN_HZ;
}

/** The part of the energy between two frequencies: 0..1. */
export function share(samples: Int16Array, lowHz: number, highHz: number): number {
  let inside = 0;
  let all = 0;
  for (const [bin, value] of spectrum(samples).entries()) {
    all += value;
    if (bin * BIN_HZ >= lowHz && bin * BIN_HZ < highHz) inside += value;
  }
  return inside / all;
}

/** Mean frequency by energy, Hz. */
export function centroid(samples: Int16Array, fromSeconds?: number, toSeconds?: number): number {
  let weighted = 0;
  let all = 0;
  for (const [bin, value] of spectrum(samples, fromSeconds, toSeconds).entries()) {
    weighted += value * bin * BIN_HZ;
    all += value;
  }
  return weighted / all;
}

/** Seconds at which something begins: the level jumps out of what was before it. `gapSeconds`: none sooner after one. */
export function onsets(samples: Int16Array, gapSeconds = 0.15): number[] {
  const step = 0.005;
  const levels = envelope(samples, step);
  const loudest = Math.max(...levels);
  const found: number[] = [];
  for (const [index, level] of levels.entries()) {
    const before = Math.max(0, ...levels.slice(Math.max(0, index - 6), Math.max(0, index - 1)));
    const at = index * step;
    if (level > loudest * 0.2 && level > before * 2 && at - (found.at(-1) ?? -1) > gapSeconds) found.push(at);
  }
  return found;
}

const TURNS = Array.from({ length: SIZE / 2 }, (_, index) => (-2 * Math.PI * index) / SIZE);
const COSINES = Float64Array.from(TURNS, Math.cos);
const SINES = Float64Array.from(TURNS, Math.sin);

/** Radix-2, in place, of SIZE points. */
function transform(re: Float64Array, im: Float64Array): void {
  const n = re.length;
  for (let i = 1, j = 0; i < n; i += 1) {
    let bit = n >> 1;
    for (; j & bit; bit >>= 1) j ^= bit;
    j ^= bit;
    if (i < j) {
      [re[i], re[j]] = [re[j] ?? 0, re[i] ?? 0];
      [im[i], im[j]] = [im[j] ?? 0, im[i] ?? 0];
    }
  }
  for (let length = 2; length <= n; length <<= 1) {
    for (let start = 0; start < n; start += length) {
      for (let k = 0; k < length / 2; k += 1) {
        const cos = COSINES[(k * n) / length] as number;
        const sin = SINES[(k * n) / length] as number;
        const a = start + k;
        const b = a + length / 2;
        const real = (re[b] as number) * cos - (im[b] as number) * sin;
        const imaginary = (re[b] as number) * sin + (im[b] as number) * cos;
        re[b] = (re[a] as number) - real;
        im[b] = (im[a] as number) - imaginary;
        re[a] = (re[a] as number) + real;
        im[a] = (im[a] as number) + imaginary;
      }
    }
  }
}

/** The fundamental frequency by autocorrelation, Hz: the shortest lag that is nearly as good as the best one. */
export function pitchHz(
  samples: Int16Array,
  fromSeconds: number,
  options: { low?: number; high?: number } = {},
): number {
  const { low = 80, high = 1500 } = options;
  const from = Math.round(fromSeconds * RATE);
  const size = Math.round(RATE * 0.05);
  const correlation = (lag: number) => {
    let [ab, aa, bb] = [0, 0, 0];
    for (let at = from; at < from + size; at += 1) {
      const a = samples[at] ?? 0;
      const b = samples[at + lag] ?? 0;
      ab += a * b;
      aa += a * a;
      bb += b * b;
    }
    return ab / Math.sqrt(aa * bb + 1);
  };
  const first = Math.floor(RATE / high);
  const values = Array.from({ length: Math.ceil(RATE / low) - first + 1 }, (_, index) =>
    correlation(first + index),
  );
  const best = Math.max(...values);
  const isPeak = (index: number) =>
    (values[index] ?? 0) >= (values[index - 1] ?? 0) && (values[index] ?? 0) >= (values[index + 1] ?? 0);
  return RATE / (first + values.findIndex((value, index) => value > best * 0.92 && isPeak(index)));
}

/** Energy of one partial, by the bins around it. */
export function partial(samples: Int16Array, hz: number, fromSeconds?: number, toSeconds?: number): number {
  const power = spectrum(samples, fromSeconds, toSeconds);
  const bin = Math.round(hz / BIN_HZ);
  return [-1, 0, 1].reduce((sum, off) => sum + (power[bin + off] ?? 0), 0);
}
