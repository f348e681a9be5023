/** Seams between two pieces of audio: fades that keep them from clicking, and the measure of a click. */
import { decodeSamples, encodeSamples, type SampleCodec } from "./silence.ts";

/**
 * Measure of a click: the step from the last sample of `before` to the first of `after`, against the largest step
 * between neighbours inside either. Pass what lies within 5 ms of the seam on both sides (at 8 kHz 40 samples each).
 * Up to 1 the seam is no steeper than the sound around it; from peak to trough of a 440 Hz tone at 48 kHz gives 35.
 * Where all around is constant it is the step itself, in levels of 16 bits; 0 where either side is empty.
 */
export function seamStep(before: Int16Array, after: Int16Array): number {
  const last = before[before.length - 1];
  const first = after[0];
  if (last === undefined || first === undefined) return 0;
  return Math.abs(first - last) / Math.max(1, largestStep(before), largestStep(after));
}

function largestStep(pcm: Int16Array): number {
  let largest = 0;
  for (let at = 1; at < pcm.length; at += 1) {
    largest = Math.max(largest, Math.abs((pcm[at] ?? 0) - (pcm[at - 1] ?? 0)));
  }
  return largest;
}

/**
 * Gain of a fade at sample `index` of `length`: exactly 0 at the first, 1 from `length` on, half a Hann window
 * between. A straight line would have corners, which are heard as a faint click of their own.
 */
export function riseGain(index: number, length: number): number {
  return index >= length ? 1 : Math.sin((Math.PI * index) / (2 * length)) ** 2;
}

/** New bytes of whole samples, each multiplied by its gain; `bytes` stay as they are. */
export function scaleSamples(
  codec: SampleCodec,
  bytes: Uint8Array,
  gainAt: (index: number) => number,
): Uint8Array {
  const pcm = decodeSamples(codec, bytes);
  for (let index = 0; index < pcm.length; index += 1)
    pcm[index] = Math.round((pcm[index] ?? 0) * gainAt(index));
  return encodeSamples(codec, pcm);
}
