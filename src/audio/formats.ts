/**
 * The names of audio formats and what they mean: the upstream's `output_format` values
 * and the headerless formats that listeners can ask for.
 */
import type { AudioFormat } from "../protocol/vocabulary.ts";

/** The 21 output formats of the streaming endpoints. */
export const STREAM_FORMATS = [
  "mp3_22050_32",
  "mp3_24000_48",
  "mp3_44100_32",
  "mp3_44100_64",
  "mp3_44100_96",
  "mp3_44100_128",
  "mp3_44100_192",
  "pcm_8000",
  "pcm_16000",
  "pcm_22050",
  "pcm_24000",
  "pcm_32000",
  "pcm_44100",
  "pcm_48000",
  "ulaw_8000",
  "alaw_8000",
  "opus_48000_32",
  "opus_48000_64",
  "opus_48000_96",
  "opus_48000_128",
  "opus_48000_192",
] as const satisfies readonly string[];

export type StreamFormat = (typeof STREAM_FORMATS)[number];

export function isStreamFormat(name: string): name is StreamFormat {
  return STREAM_FORMATS.some((format) => format === name);
}

/** The 28 output formats of the endpoints that answer with a whole file. */
export const OUTPUT_FORMATS = [
  ...STREAM_FORMATS,
  "wav_8000",
  "wav_16000",
  "wav_22050",
  "wav_24000",
  "wav_32000",
  "wav_44100",
  "wav_48000",
] as const satisfies readonly string[];

export interface UpstreamFormat {
  /** As the interface spells it, e.g. `opus_48000_64`. */
  readonly name: string;
  readonly codec: "mp3" | "pcm" | "wav" | "ulaw" | "alaw" | "opus";
  /** Hz. */
  readonly sampleRate: number;
  /** MP3 and Opus only; null otherwise. */
  readonly bitrateKbps: number | null;
}

const NAME_PATTERN = /^(mp3|pcm|wav|ulaw|alaw|opus)_(\d+)(?:_(\d+))?$/;
const UPSTREAM_FORMATS: ReadonlyMap<string, UpstreamFormat> = new Map(
  OUTPUT_FORMATS.map((name) => [name, readName(name)]),
);

/** The format of that name, or undefined where the interface has no such format; names are case-sensitive. */
export function parseUpstreamFormat(name: string): UpstreamFormat | undefined {
  return UPSTREAM_FORMATS.get(name);
}

/** Bytes of a millisecond in an upstream format: exact for G.711 and PCM, by the nominal bit rate for MP3 and Opus. */
export function bytesPerMs(format: string): number {
  const facts = parseUpstreamFormat(format);
  if (facts === undefined) return 8;
  const { codec, sampleRate, bitrateKbps } = facts;
  if (bitrateKbps !== null) return bitrateKbps / 8;
  return (sampleRate * (codec === "pcm" || codec === "wav" ? 2 : 1)) / 1000;
}

type StreamedPcm = Extract<StreamFormat, `pcm_${number}`>;
const STREAMED_PCM = STREAM_FORMATS.filter((name): name is StreamedPcm => name.startsWith("pcm_"));

/** The streamed PCM that keeps all of `sampleRate` Hz: the lowest rate from there on, else the highest that there is. */
export function streamedPcm(sampleRate: number): StreamedPcm {
  return STREAMED_PCM.reduce((best, name) => (readName(best).sampleRate >= sampleRate ? best : name));
}

function readName(name: string): UpstreamFormat {
  const match = NAME_PATTERN.exec(name);
  if (match === null) throw new TypeError(`Cannot read the format name: "${name}"`);
  const [, codec, rate, kbps] = match;
  return {
    name,
    codec: codec as UpstreamFormat["codec"],
    sampleRate: Number(rate),
    bitrateKbps: kbps === undefined ? null : Number(kbps),
  };
}

interface AudioFormatFacts {
  readonly codec: "ulaw" | "alaw" | "opus" | "pcm_s16le";
  /** Hz; for Opus the clock of its timestamps (RFC 7587 section 4.1). */
  readonly sampleRate: number;
  /** null where packets vary in size. */
  readonly bytesPerSample: number | null;
  /** Static where RFC 3551 has one, else dynamic (section 6: 96-127) and ours to choose. docs/protocol.md names them. */
  readonly rtpPayloadType: number;
}

/** L16; its static type is that of mono at 44,100 Hz (RFC 3551 table 4). */
const pcm = (sampleRate: number): AudioFormatFacts => ({
  codec: "pcm_s16le",
  sampleRate,
  bytesPerSample: 2,
  rtpPayloadType: sampleRate === 44100 ? 11 : 96,
});

/** What each listener format is made of. */
export const AUDIO_FORMATS: Readonly<Record<AudioFormat, AudioFormatFacts>> = {
  ulaw_8000: { codec: "ulaw", sampleRate: 8000, bytesPerSample: 1, rtpPayloadType: 0 },
  alaw_8000: { codec: "alaw", sampleRate: 8000, bytesPerSample: 1, rtpPayloadType: 8 },
  opus_48000: { codec: "opus", sampleRate: 48000, bytesPerSample: null, rtpPayloadType: 111 },
  pcm_8000: pcm(8000),
  pcm_16000: pcm(16000),
  pcm_22050: pcm(22050),
  pcm_24000: pcm(24000),
  pcm_32000: pcm(32000),
  pcm_44100: pcm(44100),
  pcm_48000: pcm(48000),
};

/** Frame lengths a packet of ours can have in Opus; the codec's 2.5 and 5 ms are under the protocol's minimum. */
const OPUS_FRAME_MS: readonly number[] = [10, 20, 40, 60];

/**
 * Whether a listener may ask for this format in frames of `frameMs`: 10 to 100 ms in steps of 10, of a whole number
 * of samples. pcm_22050 has 220.5 samples in 10 ms, so that its frames come in steps of 20 ms; Opus has 10, 20, 40
 * and 60 ms.
 */
export function isFrameLengthAllowed(format: AudioFormat, frameMs: number): boolean {
  if (!Number.isInteger(frameMs) || frameMs < 10 || frameMs > 100 || frameMs % 10 !== 0) return false;
  if (format === "opus_48000") return OPUS_FRAME_MS.includes(frameMs);
  return (AUDIO_FORMATS[format].sampleRate * frameMs) % 1000 === 0;
}

/** Samples in a frame at the format's own rate; throws RangeError where `isFrameLengthAllowed` says no. */
export function frameSamples(format: AudioFormat, frameMs: number): number {
  if (!isFrameLengthAllowed(format, frameMs)) {
    throw new RangeError(`Cannot cut ${format} into frames of ${frameMs} ms: see isFrameLengthAllowed`);
  }
  return (AUDIO_FORMATS[format].sampleRate * frameMs) / 1000;
}

/** Bytes of a frame; null where they vary. Throws as `frameSamples` does. */
export function frameBytes(format: AudioFormat, frameMs: number): number | null {
  const { bytesPerSample } = AUDIO_FORMATS[format];
  return bytesPerSample === null ? null : frameSamples(format, frameMs) * bytesPerSample;
}
