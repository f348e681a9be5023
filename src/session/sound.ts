/** Sounds that clients send, or have made, to be played as they are: read, checked, and counted while they are kept. */
import { bytesPerSample, sampledFormatOf } from "../audio/codecs/samples.ts";
import { readWav, WavError } from "../audio/containers/wav-reader.ts";
import type { StreamFormat } from "../audio/formats.ts";
import { type GeneratedSound, RING } from "../audio/generated-sound.ts";
import { GatewayError } from "../errors.ts";
import type { ByteRoom } from "../kit/byte-room.ts";
import type { PlayCommand, SoundOptions } from "../protocol/commands.ts";
import { SOUND_FORMATS } from "../protocol/vocabulary.ts";
import type { Generated } from "./generated-attempt.ts";
import { chooseSourceFormat, type Need } from "./route.ts";

export interface Sound {
  /** One of samples. */
  readonly format: StreamFormat;
  /** Whole samples. */
  readonly audio: Uint8Array;
}

/** What a tone or ring is without a level, and noise, dB of a sine of full scale. */
const TONE_DBFS = -20;
const NOISE_DBFS = -60;
/** For nobody in particular. */
const DEFAULT_RATE = 24_000;

export function generatedOf(options: SoundOptions): Generated {
  return { sound: kindOf(options), ms: options.ms, isUntilSpeech: options.until_speech ?? false };
}

/** Samples as good as the best listener's. */
export function generatedFormat(needs: readonly Need[]): string {
  if (needs.length === 0) return `pcm_${DEFAULT_RATE}`;
  return chooseSourceFormat(needs, { opusBitrateKbps: null, isLevelled: true });
}

function kindOf(options: SoundOptions): GeneratedSound {
  switch (options.kind) {
    case "noise":
      return { kind: "noise", dbfs: options.dbfs ?? NOISE_DBFS };
    case "ring":
      return { kind: "tone", ...RING, dbfs: options.dbfs ?? TONE_DBFS };
    case "tone": {
      const { hertz, on_ms: onMs, off_ms: offMs } = options;
      return {
        kind: "tone",
        hertz: typeof hertz === "number" ? [hertz] : hertz,
        cadence: onMs === undefined || offMs === undefined ? null : { onMs, offMs },
        dbfs: options.dbfs ?? TONE_DBFS,
      };
    }
  }
}

type SentSound = Required<Pick<PlayCommand, "audio">> & Pick<PlayCommand, "format">;

/** Throws invalid_field. */
export function soundOf({ audio, format = "wav" }: SentSound): Sound {
  const bytes = decoded(audio);
  const sound = format === "wav" ? wavOf(bytes) : { format, audio: bytes };
  const { codec } = sampledFormatOf(sound.format) ?? {};
  const known = SOUND_FORMATS.find((name) => name === sound.format);
  if (codec === undefined || known === undefined) {
    throw invalid(`it is ${sound.format}, expected one of ${SOUND_FORMATS.join(", ")}`);
  }
  const width = bytesPerSample(codec);
  if (sound.audio.length % width !== 0) throw invalid("it ends inside a sample");
  if (sound.audio.length === 0) throw invalid("it has no samples");
  return { format: known, audio: sound.audio };
}

/** Takes room until what it gives is called, once or more. Throws sounds_full. */
export function roomFor(bytes: number, room: Pick<ByteRoom, "hasRoomFor" | "take">): () => void {
  if (!room.hasRoomFor(bytes)) {
    throw new GatewayError(
      "sounds_full",
      "Sounds are full: those of all sessions, with prepared speech, take the memory that they may have (sounds-mb)",
      { retryAfterMs: 1000 },
    );
  }
  let taken = bytes;
  room.take(bytes);
  return () => {
    room.take(-taken);
    taken = 0;
  };
}

function decoded(audio: string): Uint8Array {
  const bytes = Buffer.from(audio, "base64");
  // Node skips what is not base64: a shorter result is how that shows.
  const padding = audio.endsWith("==") ? 2 : audio.endsWith("=") ? 1 : 0;
  if (bytes.length !== Math.floor(((audio.length - padding) * 3) / 4)) throw invalid("it is not base64");
  // Bytes of their own, at an even address.
  return Uint8Array.from(bytes);
}

function wavOf(file: Uint8Array): { readonly format: string; readonly audio: Uint8Array } {
  try {
    const { format, audio } = readWav(file);
    return { format, audio: Uint8Array.from(audio) };
  } catch (thrown) {
    if (thrown instanceof WavError) throw invalid(thrown.message);
    throw thrown;
  }
}

function invalid(reason: string): GatewayError {
  return new GatewayError("invalid_field", `Field audio can't be played: ${reason}`, { field: "audio" });
}
