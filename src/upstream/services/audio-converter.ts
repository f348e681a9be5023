/**
 * A service's audio as the format that was asked for. Where the service makes just that, its bytes pass as they are, but for
 * WAV headers; otherwise they are decoded, brought to the rate, and encoded.
 */
import { PauseFinder, type Silence } from "../../audio/analysis/pause-finder.ts";
import { WholeSamples } from "../../audio/analysis/whole-samples.ts";
import { concatBytes } from "../../audio/bytes.ts";
import { bytesOf } from "../../audio/codecs/pcm.ts";
import { decodeSamples, type SampleCodec } from "../../audio/codecs/samples.ts";
import type { StreamEncoder } from "../../audio/containers/encode.ts";
import { type Sampled, WavStripper } from "../../audio/containers/wav-stripper.ts";
import type { UpstreamFormat } from "../../audio/formats.ts";
import { RateConverter } from "../../audio/resample/rate-converter.ts";
import { SAMPLE_RATES } from "../../audio/resample/resample.ts";
import { GatewayError } from "../../errors.ts";
import type { ServiceFormat } from "./adapter.ts";

export interface AudioConverterOptions {
  /** What comes without a header; null: a header says it. */
  readonly plain: Sampled | null;
  /** What is wanted. */
  readonly format: UpstreamFormat;
  readonly encoder: StreamEncoder;
}

const NO_BYTES = new Uint8Array(0);
/** Less than a pause: what half a sample and sums of such numbers may be off. */
const TOUCHING_SECONDS = 1e-3;

export class AudioConverter {
  readonly #format: UpstreamFormat;
  readonly #encoder: StreamEncoder;
  readonly #stripper: WavStripper;
  readonly #rates: RateConverter;
  /** Samples of the audio that is being decoded: half of one waits for the rest of it. */
  #whole: WholeSamples | null = null;
  #halves: Uint8Array = NO_BYTES;
  #seconds = 0;
  #pauses: {
    readonly format: string;
    readonly finder: PauseFinder;
    /** Where in the audio it began to look. */
    readonly startSeconds: number;
  } | null = null;
  /** Seconds in pauses, and the last one. */
  #pauseSeconds = 0;
  #lastPause: Silence = { startSeconds: 0, endSeconds: 0 };
  #bytes = 0;
  #out: Uint8Array[] = [];

  constructor({ plain, format, encoder }: AudioConverterOptions) {
    this.#format = format;
    this.#encoder = encoder;
    this.#rates = new RateConverter(format.sampleRate);
    this.#stripper = new WavStripper({ plain, onSamples: (bytes, sampled) => this.#convert(bytes, sampled) });
  }

  /** Length of what has come. */
  get seconds(): number {
    return this.#seconds;
  }

  /** The same, without the silence at its end. */
  get soundSeconds(): number {
    const { startSeconds, endSeconds } = this.#lastPause;
    return this.#seconds - endSeconds < TOUCHING_SECONDS ? startSeconds : this.#seconds;
  }

  /** The same, without any pause. */
  get voicedSeconds(): number {
    return this.#seconds - this.#pauseSeconds;
  }

  /** What comes without a header, where the answer says it. */
  setPlain(plain: Sampled): void {
    this.#stripper.setPlain(plain);
  }

  /** `isChunk`: it begins a chunk, which may have a header of its own. Throws upstream_protocol, upstream_not_speech, encoder_failed. */
  push(bytes: Uint8Array, isChunk: boolean): Uint8Array {
    if (isChunk) this.#stripper.startChunk();
    this.#stripper.push(bytes);
    return this.#take();
  }

  /** The audio has ended. Throws as `push`. */
  finish(): Uint8Array {
    this.#stripper.finish();
    if (this.#bytes === 0) return NO_BYTES;
    const rest = this.#rates.flush();
    if (rest.length > 0) this.#out.push(this.#encoder.push(rest));
    this.#out.push(this.#encoder.flush());
    return this.#take();
  }

  /** Idempotent. */
  close(): void {
    this.#encoder.close();
  }

  #convert(bytes: Uint8Array, sampled: Sampled): void {
    this.#bytes += bytes.length;
    const { codec, sampleRate, channels } = sampled;
    this.#seconds += bytes.length / (bytesPerSample(codec) * channels * sampleRate);
    if (codec === this.#format.codec && sampleRate === this.#format.sampleRate && channels === 1) {
      this.#listen(bytes, codec, sampleRate);
      this.#out.push(bytes);
      return;
    }
    if (!SAMPLE_RATES.includes(sampleRate)) {
      const what = `it is at ${sampleRate} Hz, expected one of ${SAMPLE_RATES.join(", ")}`;
      throw new GatewayError("upstream_not_speech", `The upstream's audio can't be used: ${what}`);
    }
    const decoded = this.#decode(bytes, sampled);
    this.#listen(bytesOf(decoded), "pcm", sampleRate);
    for (const pcm of this.#rates.push(decoded, sampleRate)) {
      if (pcm.length > 0) this.#out.push(this.#encoder.push(pcm));
    }
  }

  /** `bytes` are the last that were counted. */
  #listen(bytes: Uint8Array, codec: SampleCodec, sampleRate: number): void {
    const format = `${codec}_${sampleRate}`;
    if (this.#pauses?.format !== format) {
      const startSeconds = this.#seconds - bytes.length / (bytesPerSample(codec) * sampleRate);
      this.#pauses = { format, finder: new PauseFinder(format), startSeconds };
    }
    for (const pause of this.#pauses.finder.push(bytes)) {
      const startSeconds = this.#pauses.startSeconds + pause.startSeconds;
      const endSeconds = this.#pauses.startSeconds + pause.endSeconds;
      const goesOn = startSeconds - this.#lastPause.endSeconds < TOUCHING_SECONDS;
      this.#pauseSeconds += endSeconds - startSeconds;
      this.#lastPause = { startSeconds: goesOn ? this.#lastPause.startSeconds : startSeconds, endSeconds };
    }
  }

  #decode(bytes: Uint8Array, { codec, channels }: Sampled): Int16Array {
    if (codec === "f32" || channels > 1) return this.#decodeFrames(bytes, { codec, channels });
    if (this.#whole?.codec !== codec) this.#whole = new WholeSamples(codec);
    return decodeSamples(codec, this.#whole.push(bytes).bytes);
  }

  /** Floats, and what has several channels: rare, so it is copied. */
  #decodeFrames(bytes: Uint8Array, { codec, channels }: Pick<Sampled, "codec" | "channels">): Int16Array {
    const all = this.#halves.length === 0 ? bytes : concatBytes([this.#halves, bytes]);
    const frameBytes = bytesPerSample(codec) * channels;
    const frames = Math.floor(all.length / frameBytes);
    this.#halves = Uint8Array.from(all.subarray(frames * frameBytes));
    const samples = codec === "f32" ? floatsOf(all, frames * channels) : decodeSamples(codec, all);
    return Int16Array.from({ length: frames }, (_, frame) => {
      let sum = 0;
      for (let channel = 0; channel < channels; channel += 1) sum += samples[frame * channels + channel] ?? 0;
      return Math.max(-32768, Math.min(32767, Math.round(sum / channels)));
    });
  }

  #take(): Uint8Array {
    const out = this.#out;
    this.#out = [];
    return out.length === 0 ? NO_BYTES : concatBytes(out);
  }
}

function floatsOf(bytes: Uint8Array, count: number): Float32Array {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  // What is no number is silence.
  return Float32Array.from({ length: count }, (_, index) => (view.getFloat32(index * 4, true) || 0) * 32767);
}

function bytesPerSample(codec: Sampled["codec"]): number {
  if (codec === "f32") return 4;
  return codec === "pcm" ? 2 : 1;
}

/**
 * What to ask of a service for a format: the very format where it makes that, else PCM at the rate, at the next higher one,
 * or at its highest.
 */
export function chooseFormat(
  { codec, sampleRate }: UpstreamFormat,
  makes: readonly ServiceFormat[],
): Sampled {
  const native = makes.find((made) => made.codec === codec && made.sampleRates.includes(sampleRate));
  if (native !== undefined) return { codec: native.codec, sampleRate, channels: 1 };
  const rates = makes.flatMap((made) => (made.codec === "pcm" ? made.sampleRates : []));
  const higher = rates.filter((rate) => rate >= sampleRate);
  const rate = higher.length > 0 ? Math.min(...higher) : Math.max(...rates);
  return { codec: "pcm", sampleRate: rate, channels: 1 };
}
