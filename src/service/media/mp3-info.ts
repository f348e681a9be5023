/**
 * The frame that players read before an MP3's sound: how much of the encoder's delay and padding is to be left out, so that
 * what is heard is as long as what was encoded and begins with it. For mp3_44100_128, mono.
 */
export const MP3_RATE = 44_100;
export const MP3_FRAME_SAMPLES = 1152;
/** Samples that LAME puts before the first; decoders add 529 of their own and know that. */
const ENCODER_DELAY = 576;
/** 128 kbit/s at 44.1 kHz, not padded. */
const FRAME_BYTES = 417;
const FRAME_HEADER = [0xff, 0xfb, 0x90, 0xc4] as const;
/** Behind the header and the side information of a mono frame. */
const TAG_AT = 21;
const HAS_FRAMES = 1;
const HAS_BYTES = 2;
const MAX_PADDING = 4095;
/** ffmpeg, and with it browsers, would play the frame as silence if it told neither frames nor bytes. */
const UNKNOWN_BYTES = 0xffff_ffff;

export interface Mp3Length {
  /** Bytes and samples of what is encoded, without this frame. */
  readonly bytes: number;
  readonly samples: number;
  readonly frames: number;
}

/** `length` null: not known yet; players then leave out the delay, and not the padding (at most two frames, 52 ms). */
export function mp3InfoFrame(length: Mp3Length | null): Uint8Array {
  const frame = new Uint8Array(FRAME_BYTES);
  const view = new DataView(frame.buffer);
  frame.set(FRAME_HEADER);
  let at = write(frame, TAG_AT, "Info");
  view.setUint32(at, length === null ? HAS_BYTES : HAS_FRAMES | HAS_BYTES);
  at += 4;
  if (length !== null) {
    view.setUint32(at, length.frames);
    at += 4;
  }
  view.setUint32(at, length === null ? UNKNOWN_BYTES : length.bytes + FRAME_BYTES);
  at += 4;
  at = write(frame, at, "LAME3.100");
  // Method 1 is a constant rate.
  frame[at] = 1;
  const rateAt = at + 11;
  frame[rateAt] = 128;
  const padding = length === null ? 0 : length.frames * MP3_FRAME_SAMPLES - ENCODER_DELAY - length.samples;
  const delays = (ENCODER_DELAY << 12) | Math.max(0, Math.min(MAX_PADDING, padding));
  view.setUint8(rateAt + 1, delays >> 16);
  view.setUint16(rateAt + 2, delays & 0xffff);
  const bytesAt = rateAt + 8;
  if (length !== null) view.setUint32(bytesAt, length.bytes + FRAME_BYTES);
  const crcAt = bytesAt + 6;
  view.setUint16(crcAt, crc16(frame.subarray(0, crcAt)));
  return frame;
}

function write(frame: Uint8Array, at: number, text: string): number {
  for (let index = 0; index < text.length; index += 1) frame[at + index] = text.charCodeAt(index);
  return at + text.length;
}

/** CRC-16 with the polynomial 0x8005, bits reversed, from 0. */
function crc16(bytes: Uint8Array): number {
  let crc = 0;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit += 1) crc = (crc & 1) === 1 ? (crc >> 1) ^ 0xa001 : crc >> 1;
  }
  return crc;
}
