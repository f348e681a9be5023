/** What the tests measure of sound. */
import { PitchTracker } from "../../../../src/service/convert/pitch-tracker.ts";

export function rms(samples: Float32Array): number {
  let sum = 0;
  for (const sample of samples) sum += sample * sample;
  return Math.sqrt(sum / Math.max(1, samples.length));
}

/** Loudness of each 20 ms. */
export function loudnessOf(samples: Float32Array): number[] {
  const steps: number[] = [];
  for (let at = 0; at + 480 <= samples.length; at += 480) steps.push(rms(samples.subarray(at, at + 480)));
  return steps;
}

/** Pearson's, over the shorter of the two. */
export function correlationOf(a: readonly number[], b: readonly number[]): number {
  const length = Math.min(a.length, b.length);
  const mean = (values: readonly number[]) => values.slice(0, length).reduce((sum, x) => sum + x, 0) / length;
  const meanA = mean(a);
  const meanB = mean(b);
  let product = 0;
  let first = 0;
  let second = 0;
  for (let at = 0; at < length; at += 1) {
    const x = (a[at] ?? 0) - meanA;
    const y = (b[at] ?? 0) - meanB;
    product += x * y;
    first += x * x;
    second += y * y;
  }
  return product / Math.sqrt(first * second);
}

export function floatsOf(pcm: Int16Array): Float32Array {
  return Float32Array.from(pcm, (sample) => sample / 32_768);
}

export function samplesOf(bytes: Uint8Array): Int16Array {
  const copy = bytes.slice();
  return new Int16Array(copy.buffer, 0, Math.floor(copy.length / 2));
}

/** The pitch of each frame of the whole. */
export function trackPitch(samples: Float32Array): number[] {
  const tracker = new PitchTracker();
  return [...tracker.push(samples), ...tracker.flush()];
}
