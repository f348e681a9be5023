/** Recordings that are to become a voice: measured together, kept as they came, and matched with an embedded voice. */
import { ApiError } from "../api-error.ts";
import { decodeUpload } from "../media/decode-upload.ts";
import { containerOf, id3Bytes, SNIFF_BYTES } from "../media/decoders/sniff.ts";
import type { PcmPiece } from "../media/pieces.ts";
import type { MediaStore, PinnedMedia } from "../store/media.ts";
import type { NewSample } from "../store/voices.ts";
import { VOICES, type Voice } from "../voice/engine/voices.ts";
import type { ConversionPool } from "./conversion-pool.ts";
import type { VoiceProfile } from "./voice-profile.ts";

interface SampleFile {
  readonly fileName: string;
  readonly mimeType: string;
  read(): AsyncIterable<Uint8Array>;
}

/** All of the samples as one, and how long each is. Throws ApiError 400 for what is no audio, and where nobody speaks. */
export async function measureSamples(
  pool: ConversionPool,
  files: readonly SampleFile[],
  options: { readonly removesNoise: boolean; readonly signal: AbortSignal },
): Promise<{ readonly profile: VoiceProfile; readonly seconds: readonly number[] }> {
  const seconds: number[] = [];
  const profile = await pool.measure(decodeAll(files, seconds), options);
  if (profile === null)
    throw ApiError.unfit("invalid_audio", "No voice was found in the files, expected speech.", {
      param: "files",
    });
  return { profile, seconds };
}

async function* decodeAll(files: readonly SampleFile[], seconds: number[]): AsyncGenerator<PcmPiece> {
  for (const file of files) {
    let length = 0;
    for await (const piece of decodeUpload(file, { fileFormat: "other" })) {
      length += piece.pcm.length / piece.sampleRate;
      yield piece;
    }
    seconds.push(length);
  }
}

/** The embedded voice whose pitch is nearest, among those of the language where there are some, else of the English ones. */
export async function nearestVoice(
  pool: ConversionPool,
  wanted: { readonly pitchHz: number; readonly language: string | undefined },
): Promise<{ readonly voice: Voice; readonly pitchHz: number }> {
  const spoken = VOICES.some(({ language }) => language === wanted.language) ? wanted.language : "en";
  let nearest: { readonly voice: Voice; readonly pitchHz: number; readonly distance: number } | null = null;
  for (const voice of VOICES.filter(({ language }) => language === spoken)) {
    const profile = await pool.profileOf(voice.id);
    if (profile === null) continue;
    const distance = Math.abs(Math.log2(profile.pitchHz / wanted.pitchHz));
    if (nearest !== null && distance >= nearest.distance) continue;
    nearest = { voice, pitchHz: profile.pitchHz, distance };
  }
  if (nearest === null)
    throw new RangeError("Cannot choose a voice: none of the embedded ones could be measured");
  return nearest;
}

/** On the disk, byte for byte; to be handed to the store at once. Nothing is left of them where it rejects. */
export async function keepSamples(
  media: MediaStore,
  files: readonly SampleFile[],
  options: {
    readonly seconds: readonly number[];
    readonly removesNoise: boolean;
    readonly signal: AbortSignal;
  },
): Promise<{ readonly sample: NewSample; readonly media: PinnedMedia }[]> {
  const kept: { readonly sample: NewSample; readonly media: PinnedMedia }[] = [];
  try {
    for (const [index, file] of files.entries()) {
      const { bytes, front } = await keepFile(media, file, options.signal);
      kept.push({
        sample: {
          fileName: file.fileName,
          mimeType: audioTypeOf(file.mimeType, front),
          durationSeconds: options.seconds[index] ?? null,
          removesNoise: options.removesNoise,
        },
        media: bytes,
      });
    }
    options.signal.throwIfAborted();
    return kept;
  } catch (thrown) {
    for (const one of kept) one.media.release();
    throw thrown;
  }
}

async function keepFile(
  media: MediaStore,
  file: SampleFile,
  signal: AbortSignal,
): Promise<{ readonly bytes: PinnedMedia; readonly front: Uint8Array }> {
  const writer = await media.writer();
  try {
    let front: Uint8Array = new Uint8Array(0);
    for await (const bytes of file.read()) {
      signal.throwIfAborted();
      if (front.length === 0) front = bytes.slice(0, SNIFF_BYTES);
      await writer.write(bytes);
    }
    return { bytes: await writer.finish(), front };
  } catch (thrown) {
    await writer.abort();
    throw thrown;
  }
}

const TYPES = {
  wav: "audio/wav",
  aiff: "audio/aiff",
  mp3: "audio/mpeg",
  flac: "audio/flac",
  "ogg-opus": "audio/ogg",
  "ogg-vorbis": "audio/ogg",
  "ogg-flac": "audio/ogg",
  matroska: "audio/webm",
  mp4: "audio/mp4",
} as const;

/** As the client named it where that is a type of audio; many clients send none, then by content. */
function audioTypeOf(given: string, front: Uint8Array): string {
  if (/^audio\/[\w.+-]{1,60}$/.test(given)) return given;
  if (id3Bytes(front) > 0) return "audio/mpeg";
  const container = containerOf(front);
  return container === undefined ? "audio/mpeg" : TYPES[container];
}
