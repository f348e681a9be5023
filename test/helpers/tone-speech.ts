/**
 * Speech that needs no voice: a tone of exact length with the alignment that belongs to it, so that a test can say
 * which samples and which characters have to arrive. Its G.711 is written here once more, so that what the tests
 * compare with is not what they test.
 */

import { isStreamFormat } from "../../src/audio/formats.ts";

/** The format is none of the vendor's, or none that a tone is made in. */
export class ToneFormatError extends RangeError {}

export interface ToneSpeechOptions {
  /** Or `inputs` for a dialogue. */
  readonly text?: string;
  readonly inputs?: readonly { readonly text: string; readonly voiceId: string }[];
  /** Length of each character (code point); default 60. Times the rate it has to give whole samples. */
  readonly msPerChar?: number;
  /** ulaw_8000 (default), alaw_8000 or pcm_{rate}. */
  readonly format?: string;
  /** Characters of one record; default 5. */
  readonly charsPerChunk?: number;
}

export interface ToneAlignment {
  readonly characters: string[];
  readonly character_start_times_seconds: number[];
  readonly character_end_times_seconds: number[];
}

export interface ToneSegment {
  readonly voice_id: string;
  readonly start_time_seconds: number;
  readonly end_time_seconds: number;
  readonly character_start_index: number;
  readonly character_end_index: number;
  readonly dialogue_input_index: number;
}

export interface ToneChunk {
  readonly audio: Buffer;
  readonly alignment: ToneAlignment;
  /** Of a dialogue: the segments that begin in this chunk. */
  readonly voiceSegments: readonly ToneSegment[];
  /** Where its audio begins and ends, ms from the start. */
  readonly startMs: number;
  readonly endMs: number;
  /** As it goes over the wire, newline included. */
  readonly line: Buffer;
}

export interface ToneSpeech {
  readonly format: string;
  readonly text: string;
  readonly durationMs: number;
  /** All of it in one. */
  readonly audio: Buffer;
  readonly alignment: ToneAlignment;
  readonly voiceSegments: readonly ToneSegment[];
  readonly chunks: readonly ToneChunk[];
}

const TONE_HZ = 440;
const TONE_AMPLITUDE = 8000;

/** The chunks of a `with-timestamps` stream for a text or a dialogue. */
export function ndjsonSpeech(options: ToneSpeechOptions): ToneSpeech {
  const { msPerChar = 60, format = "ulaw_8000", charsPerChunk = 5 } = options;
  const inputs = options.inputs ?? [{ text: options.text ?? "", voiceId: "" }];
  const text = inputs.map((input) => input.text).join("");
  const characters = Array.from(text);
  const voiceSegments = options.inputs === undefined ? [] : segmentsOf(inputs, msPerChar);
  const { rate, bytesPerSample } = describe(format);
  const bytesPerChar = (rate * msPerChar * bytesPerSample) / 1000;
  if (!Number.isInteger(bytesPerChar / bytesPerSample)) {
    throw new RangeError(`Tone can't be cut: ${msPerChar} ms at ${rate} Hz, expected whole samples`);
  }
  const audio = encode(tone(rate, (characters.length * bytesPerChar) / bytesPerSample), format);
  const chunks: ToneChunk[] = [];
  for (let first = 0; first < characters.length; first += charsPerChunk) {
    const end = Math.min(first + charsPerChunk, characters.length);
    const piece = audio.subarray(first * bytesPerChar, end * bytesPerChar);
    const alignment = align(characters.slice(first, end), first, msPerChar);
    const segments = voiceSegments.filter(
      ({ character_start_index: index }) => index >= first && index < end,
    );
    const record = {
      audio_base64: piece.toString("base64"),
      alignment,
      normalized_alignment: alignment,
      ...(options.inputs === undefined ? {} : { voice_segments: segments }),
    };
    const line = Buffer.from(`${JSON.stringify(record)}\n`);
    const startMs = first * msPerChar;
    chunks.push({ audio: piece, alignment, voiceSegments: segments, startMs, endMs: end * msPerChar, line });
  }
  const durationMs = characters.length * msPerChar;
  const alignment = align(characters, 0, msPerChar);
  return { format, text, durationMs, audio, alignment, voiceSegments, chunks };
}

function segmentsOf(inputs: NonNullable<ToneSpeechOptions["inputs"]>, msPerChar: number): ToneSegment[] {
  let index = 0;
  return inputs.map((input, inputIndex) => {
    const first = index;
    index += Array.from(input.text).length;
    return {
      voice_id: input.voiceId,
      start_time_seconds: (first * msPerChar) / 1000,
      end_time_seconds: (index * msPerChar) / 1000,
      character_start_index: first,
      character_end_index: index,
      dialogue_input_index: inputIndex,
    };
  });
}

function align(characters: string[], first: number, msPerChar: number): ToneAlignment {
  return {
    characters,
    character_start_times_seconds: characters.map((_, index) => ((first + index) * msPerChar) / 1000),
    character_end_times_seconds: characters.map((_, index) => ((first + index + 1) * msPerChar) / 1000),
  };
}

function describe(format: string): { rate: number; bytesPerSample: number } {
  const pcmRate = /^pcm_(\d+)$/.exec(format)?.[1];
  if (pcmRate !== undefined && isStreamFormat(format)) return { rate: Number(pcmRate), bytesPerSample: 2 };
  if (format === "ulaw_8000" || format === "alaw_8000") return { rate: 8000, bytesPerSample: 1 };
  throw new ToneFormatError(
    `Tone can't be made: format ${format}, expected ulaw_8000, alaw_8000 or pcm_{rate} of the vendor`,
  );
}

function tone(rate: number, samples: number): Int16Array {
  return Int16Array.from({ length: samples }, (_, index) =>
    Math.round(TONE_AMPLITUDE * Math.sin((2 * Math.PI * TONE_HZ * index) / rate)),
  );
}

function encode(samples: Int16Array, format: string): Buffer {
  if (format === "ulaw_8000") return Buffer.from(Array.from(samples, toUlaw));
  if (format === "alaw_8000") return Buffer.from(Array.from(samples, toAlaw));
  return Buffer.from(samples.buffer);
}

/** ITU-T G.711 mu-law of a 16-bit sample. */
function toUlaw(sample: number): number {
  const magnitude = Math.min(Math.abs(sample), 32_635) + 132;
  const exponent = 31 - Math.clz32(magnitude) - 7;
  const mantissa = (magnitude >> (exponent + 3)) & 0x0f;
  return ~((sample < 0 ? 0x80 : 0) | (exponent << 4) | mantissa) & 0xff;
}

/** ITU-T G.711 A-law of a 16-bit sample. */
function toAlaw(sample: number): number {
  const magnitude = Math.min(sample < 0 ? ~sample : sample, 32_767) >> 4;
  const exponent = magnitude < 32 ? 0 : 31 - Math.clz32(magnitude) - 4;
  const code = exponent === 0 ? magnitude >> 1 : (exponent << 4) | ((magnitude >> exponent) & 0x0f);
  return (code | (sample < 0 ? 0 : 0x80)) ^ 0x55;
}
