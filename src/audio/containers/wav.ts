/** WAV (RIFF/WAVE) headers of 16-bit mono PCM. */

/**
 * Length of a stream whose end is not known when its header is sent. Players (ffmpeg, sox, browsers) take a length of
 * all ones as "until the end"; a length of 0 makes some of them play nothing.
 */
export const UNKNOWN_DATA_BYTES = 0xffffffff;

export const WAV_HEADER_BYTES = 44;
const MAX_SIZE = 0xffffffff;
const PCM_TAG = 1;
const FMT_BYTES = 16;

/** The 44 bytes in front of `dataBytes` of PCM; UNKNOWN_DATA_BYTES for a stream. */
export function wavHeader(options: { readonly sampleRate: number; readonly dataBytes: number }): Uint8Array {
  const { sampleRate, dataBytes } = options;
  const header = new Uint8Array(WAV_HEADER_BYTES);
  const fields = new DataView(header.buffer);
  const text = new TextEncoder();
  header.set(text.encode("RIFF"), 0);
  fields.setUint32(4, Math.min(dataBytes + WAV_HEADER_BYTES - 8, MAX_SIZE), true);
  header.set(text.encode("WAVEfmt "), 8);
  fields.setUint32(16, FMT_BYTES, true);
  fields.setUint16(20, PCM_TAG, true);
  fields.setUint16(22, 1, true);
  fields.setUint32(24, sampleRate, true);
  fields.setUint32(28, sampleRate * 2, true);
  fields.setUint16(32, 2, true);
  fields.setUint16(34, 16, true);
  header.set(text.encode("data"), 36);
  fields.setUint32(40, Math.min(dataBytes, MAX_SIZE), true);
  return header;
}

/** Whether these bytes begin as a header does. */
export function isWavHeader(bytes: Uint8Array): boolean {
  const text = Buffer.from(bytes.subarray(0, 12)).toString("latin1");
  return text.startsWith("RIFF") && text.endsWith("WAVE");
}
