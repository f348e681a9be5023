/** What Asterisk has recorded of a call, in whole frames of 20 ms, and the speech it is held against. */
import { readFileSync } from "node:fs";

/** Format of the gateway -> what Asterisk calls it, and how its files end. */
export const ASTERISK_FORMATS = {
  ulaw_8000: { name: "ulaw", extension: "ulaw", frameBytes: 160 },
  pcm_8000: { name: "slin", extension: "sln", frameBytes: 320 },
  pcm_16000: { name: "slin16", extension: "sln16", frameBytes: 640 },
} as const;

export type RecordedFormat = keyof typeof ASTERISK_FORMATS;

const FRAME_MS = 20;

export class Recording {
  readonly file: string;
  readonly #format: RecordedFormat;

  constructor(file: string, format: RecordedFormat) {
    this.file = file;
    this.#format = format;
  }

  /** Length of all of it. */
  get ms(): number {
    return (readFileSync(this.file).length / ASTERISK_FORMATS[this.#format].frameBytes) * FRAME_MS;
  }
  /** Without the frames of silence, which stand before, behind, and where a busy machine was late. */
  get sound(): Buffer {
    return soundOf(readFileSync(this.file), this.#format);
  }
}

/** The frames that are not all silence, one behind the other. */
export function soundOf(audio: Buffer, format: RecordedFormat): Buffer {
  return Buffer.concat(framesOf(audio, format).filter((frame) => !isSilent(frame, format)));
}

/** How far into the speech one is who has heard `sound` of it and no more, ms. */
export function heardMs(sound: Buffer, speech: Buffer, format: RecordedFormat): number {
  let left = sound.length / ASTERISK_FORMATS[format].frameBytes;
  let ms = 0;
  for (const frame of framesOf(speech, format)) {
    if (left === 0) break;
    ms += FRAME_MS;
    if (!isSilent(frame, format)) left -= 1;
  }
  return ms;
}

function framesOf(audio: Buffer, format: RecordedFormat): Buffer[] {
  const { frameBytes } = ASTERISK_FORMATS[format];
  const frames: Buffer[] = [];
  for (let at = 0; at + frameBytes <= audio.length; at += frameBytes)
    frames.push(normalized(audio.subarray(at, at + frameBytes), format));
  return frames;
}

/** mu-law has two zeros, and Asterisk knows one of them only. */
function normalized(frame: Buffer, format: RecordedFormat): Buffer {
  return format === "ulaw_8000" ? Buffer.from(frame.map((byte) => (byte === 0x7f ? 0xff : byte))) : frame;
}

function isSilent(frame: Buffer, format: RecordedFormat): boolean {
  const zero = format === "ulaw_8000" ? 0xff : 0;
  return frame.every((byte) => byte === zero);
}
