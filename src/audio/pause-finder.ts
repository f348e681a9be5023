/** Where speech pauses: the stretches of silence in an upstream's G.711 or PCM. Compressed audio is not looked into. */
import { bytesPerSample, type SampleCodec, sampledFormatOf, silentRun } from "./silence.ts";

/** Seconds from the start of the audio. */
export interface Silence {
  readonly startSeconds: number;
  readonly endSeconds: number;
}

/** Silence between sounds that is shorter is part of them: the stop of a "t", a quiet cycle of a low voice. */
const MIN_SECONDS = 0.04;

export class PauseFinder {
  readonly #codec: SampleCodec | null;
  readonly #bytesPerSecond: number;
  readonly #width: number;
  readonly #minSamples: number;
  #bytes = 0;

  /** `format`: the upstream's. */
  constructor(format: string) {
    const { codec, sampleRate } = sampledFormatOf(format) ?? { codec: null, sampleRate: 8000 };
    this.#codec = codec;
    this.#width = this.#codec === null ? 1 : bytesPerSample(this.#codec);
    this.#bytesPerSecond = sampleRate * this.#width;
    this.#minSamples = Math.ceil(MIN_SECONDS * sampleRate);
  }

  /** Audio that nobody asks about. */
  skip(audio: Uint8Array): void {
    this.#bytes += audio.length;
  }

  /** The silences in this audio, which comes behind all before. Those at its ends may go on in what comes next to it. */
  push(audio: Uint8Array): Silence[] {
    const codec = this.#codec;
    const found: Silence[] = [];
    const from = this.#bytes;
    this.#bytes += audio.length;
    if (codec === null) return found;
    const width = this.#width;
    const add = (start: number, end: number): void => {
      if (end <= start) return;
      const [startSeconds, endSeconds] = [
        (from + start) / this.#bytesPerSecond,
        (from + end) / this.#bytesPerSecond,
      ];
      found.push({ startSeconds, endSeconds });
    };
    // A sample that was cut in two is not looked at, and belongs to the silence beside it: pieces touch.
    const first = from % width;
    const last = audio.length - ((from + audio.length) % width);
    const count = Math.max(0, last - first) / width;
    const lead = silentRun(codec, audio, { from: first, count, isBackward: false });
    if (lead === count) {
      add(0, audio.length);
      return found;
    }
    const firstSound = first + lead * width;
    const trail = silentRun(codec, audio, { from: last - width, count, isBackward: true });
    const lastSound = last - (trail + 1) * width;
    add(0, firstSound);
    this.#findBetween(codec, audio, { firstSound, lastSound, add });
    add(lastSound + width, audio.length);
    return found;
  }

  /** A silence that counts holds the sample so far behind the sound before it: most of the others are jumped over. */
  #findBetween(
    codec: SampleCodec,
    audio: Uint8Array,
    {
      firstSound,
      lastSound,
      add,
    }: {
      readonly firstSound: number;
      readonly lastSound: number;
      readonly add: (start: number, end: number) => void;
    },
  ): void {
    const width = this.#width;
    const minSamples = this.#minSamples;
    let start = firstSound + width;
    for (;;) {
      const ahead = start + minSamples * width;
      if (ahead > lastSound) return;
      const quiet = silentRun(codec, audio, { from: ahead - width, count: minSamples, isBackward: true });
      if (quiet < minSamples) {
        start = ahead - quiet * width;
        continue;
      }
      const count = (lastSound - ahead) / width;
      const end = ahead + width * silentRun(codec, audio, { from: ahead, count, isBackward: false });
      add(start, end);
      start = end + width;
    }
  }
}
