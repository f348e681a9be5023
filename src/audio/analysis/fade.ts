/** Fades that keep the splice of two pieces of audio from clicking. */
import { decodeSamples, encodeSamples, type SampleCodec } from "../codecs/samples.ts";

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
