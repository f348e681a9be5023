/** WAV files for uploads and sounds. */
import { bytesOf } from "../../src/audio/codecs/pcm.ts";
import { WAV_HEADER_BYTES, wavHeader } from "../../src/audio/containers/wav.ts";

/** A whole WAV file, with true sizes in its header. */
export function encodeWavFile(pcm: Int16Array, sampleRate: number): Uint8Array {
  const file = new Uint8Array(WAV_HEADER_BYTES + pcm.byteLength);
  file.set(wavHeader({ sampleRate, dataBytes: pcm.byteLength }));
  file.set(bytesOf(pcm), WAV_HEADER_BYTES);
  return file;
}
