/** Where speech pauses: the stretches of silence in an upstream's G.711 or PCM. Compressed audio is not looked into. */
import { parseUpstreamFormat } from "./formats.ts";
import { bytesPerSample, isSoundAt, type SampleCodec } from "./silence.ts";

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
  #bytes = 0;

  /** `format`: the upstream's. */
  constructor(format: string) {
    const facts = parseUpstreamFormat(format);
    const codec = facts?.codec;
    this.#codec = codec === "ulaw" || codec === "alaw" || codec === "pcm" ? codec : null;
    this.#width = this.#codec === null ? 1 : bytesPerSample(this.#codec);
    this.#bytesPerSecond = (facts?.sampleRate ?? 8000) * this.#width;
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
    // A sample that was cut in two is not looked at, and belongs to the silence beside it: pieces touch.
    const first = from % this.#width;
    const last = audio.length - ((from + audio.length) % this.#width);
    let start = 0;
    const close = (end: number): void => {
      const isLong = end - start >= MIN_SECONDS * this.#bytesPerSecond;
      const isAtEnd = end > start && (start === 0 || end === audio.length);
      if (isLong || isAtEnd) {
        const [startSeconds, endSeconds] = [
          (from + start) / this.#bytesPerSecond,
          (from + end) / this.#bytesPerSecond,
        ];
        found.push({ startSeconds, endSeconds });
      }
    };
    for (let at = first; at < last; at += this.#width) {
      if (!isSoundAt(codec, audio, at)) continue;
      close(at);
      start = at + this.#width;
    }
    close(audio.length);
    return found;
  }
}
