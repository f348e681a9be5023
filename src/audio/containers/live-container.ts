/**
 * What stands around the frames of a session when they go out as one endless file: nothing, a header, Ogg pages, or
 * another codec. Frames in, bytes out, synchronously; one object for each listener.
 */
import type { AudioFormat } from "../../protocol/vocabulary.ts";
import { silenceBytes } from "../analysis/silence.ts";
import { concatBytes } from "../bytes.ts";
import { createMp3Encoder, type Mp3Encoder } from "../codecs/mp3.ts";
import type { SampleCodec } from "../codecs/samples.ts";
import { AUDIO_FORMATS, frameSamples } from "../formats.ts";
import { OggOpusStream } from "./ogg-stream.ts";
import { UNKNOWN_DATA_BYTES, wavHeader } from "./wav.ts";

export const CONTAINERS = ["ogg", "wav", "pcm", "ulaw", "mp3"] as const;
export type ContainerName = (typeof CONTAINERS)[number];

export interface LiveContainer {
  /** Whether an encoder holds back the end of what it was given until more follows. */
  readonly isHoldingBack: boolean;
  /** So much later than the frames say stands the sound in what players decode, ms. */
  readonly delayMs: number;
  /** The file's beginning; empty where it has none. */
  start(): Uint8Array;
  /** The least silence that bytes come of, before any frame: for files without a beginning. */
  opening(): { readonly bytes: Uint8Array; readonly silenceMs: number };
  /** The bytes of frames, possibly none yet, possibly a view of the one frame. */
  frames(frames: readonly Uint8Array[]): Uint8Array;
  /** So many frames of silence. */
  silence(frames: number): Uint8Array;
  /** In the place of so many frames that are missing; empty where the audio is simply shorter. */
  missing(frames: number): Uint8Array;
  /** Sound is over for now: what an encoder holds back, with the silence that it takes to get it out. */
  settle(): Uint8Array;
  /** The file's end. Nothing may be called after it. */
  finish(): Uint8Array;
}

export interface LiveContainerOptions {
  readonly name: ContainerName;
  /** Format of the frames: opus_48000 for ogg, ulaw_8000 for ulaw, PCM for the others (mp3: 22050, 24000 or 44100 Hz). */
  readonly format: AudioFormat;
  readonly frameMs: number;
}

const NO_BYTES = new Uint8Array(0);
const none = (): Uint8Array => NO_BYTES;
/** Samples after which LAME has given out all that it was given: its delay and one frame, rounded up. */
const MP3_SETTLE_SAMPLES = 3 * 1152;
/**
 * What decoded MP3 lags behind at every rate, in samples: 576 of LAME, 529 of decoders, which could know only from a tag
 * in front that both are there (measured with two of them).
 */
const MP3_DELAY_SAMPLES = 576 + 529;

/** Kilobits a second that suit one voice at each rate. */
const MP3_KBPS: Readonly<Record<number, number>> = { 22050: 64, 24000: 64, 44100: 96 };

/** Rejects with RangeError for a rate that MP3 does not have. */
export async function createLiveContainer(options: LiveContainerOptions): Promise<LiveContainer> {
  const { sampleRate } = AUDIO_FORMATS[options.format];
  switch (options.name) {
    case "ogg":
      return oggContainer(options.frameMs);
    case "wav":
      return rawContainer(options, "pcm", wavHeader({ sampleRate, dataBytes: UNKNOWN_DATA_BYTES }));
    case "pcm":
      return rawContainer(options, "pcm");
    case "ulaw":
      return rawContainer(options, "ulaw");
    case "mp3": {
      const encoder = await createMp3Encoder({ sampleRate, bitrateKbps: MP3_KBPS[sampleRate] ?? 0 });
      return mp3Container(encoder, {
        sampleRate,
        frameSamples: frameSamples(options.format, options.frameMs),
      });
    }
  }
}

function oggContainer(frameMs: number): LiveContainer {
  const stream = new OggOpusStream({ frameMs });
  return {
    isHoldingBack: false,
    // Players drop what the encoder lags behind, as the header says.
    delayMs: 0,
    start: () => stream.header(),
    opening: () => ({ bytes: stream.silence(1), silenceMs: frameMs }),
    frames: (frames) => stream.pages(frames),
    silence: (frames) => stream.silence(frames),
    missing: (frames) => stream.concealed(frames),
    settle: none,
    finish: () => stream.finish(),
  };
}

function rawContainer(
  options: LiveContainerOptions,
  codec: SampleCodec,
  header: Uint8Array = NO_BYTES,
): LiveContainer {
  const samples = frameSamples(options.format, options.frameMs);
  const silence = (frames: number) => silenceBytes(codec, frames * samples);
  return {
    isHoldingBack: false,
    delayMs: 0,
    start: () => header,
    opening: () => ({ bytes: silence(1), silenceMs: options.frameMs }),
    frames: concatBytes,
    silence,
    missing: none,
    settle: none,
    finish: none,
  };
}

function mp3Container(
  encoder: Mp3Encoder,
  { sampleRate, frameSamples }: { readonly sampleRate: number; readonly frameSamples: number },
): LiveContainer {
  const settle = (): Uint8Array => encoder.encode(new Int16Array(MP3_SETTLE_SAMPLES));
  return {
    isHoldingBack: true,
    delayMs: (MP3_DELAY_SAMPLES * 1000) / sampleRate,
    start: none,
    opening: () => ({ bytes: settle(), silenceMs: (MP3_SETTLE_SAMPLES * 1000) / sampleRate }),
    frames: (frames) => concatBytes(frames.map((frame) => encoder.encode(samplesOf(frame)))),
    silence: (frames) => encoder.encode(new Int16Array(frames * frameSamples)),
    missing: none,
    settle,
    finish: () => encoder.finish(),
  };
}

/** Copied: a frame is a view that may begin at an odd byte. */
function samplesOf(frame: Uint8Array): Int16Array {
  return new Int16Array(new Uint8Array(frame).buffer);
}
