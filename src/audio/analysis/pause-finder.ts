/** Where speech pauses: the stretches of silence in an upstream's G.711 or PCM. Compressed audio is not looked into. */

import { bytesPerSample, type SampleCodec, sampledFormatOf } from "../codecs/samples.ts";
import { silentRun } from "./silence.ts";
import { WholeSamples } from "./whole-samples.ts";

/** Seconds from the start of the audio. */
export interface Silence {
  readonly startSeconds: number;
  readonly endSeconds: number;
}

/** Silence that is shorter is part of the sound: the stop of a "t", a quiet cycle of a low voice. */
const MIN_SECONDS = 0.04;

/** Silence from one sample up to another, counted from the start of the audio or of a piece. */
interface Run {
  readonly start: number;
  readonly end: number;
}

export class PauseFinder {
  /** null = compressed. */
  readonly #wholeSamples: WholeSamples | null;
  readonly #sampleRate: number;
  readonly #minSamples: number;
  /** The silence at the end of what was looked at, of any length. */
  #open: Run = { start: 0, end: 0 };

  /** `format`: the upstream's. */
  constructor(format: string) {
    const sampled = sampledFormatOf(format);
    this.#wholeSamples = sampled === null ? null : new WholeSamples(sampled.codec);
    this.#sampleRate = sampled?.sampleRate ?? 8000;
    this.#minSamples = Math.ceil(MIN_SECONDS * this.#sampleRate);
  }

  /** Whether it can look into this audio. */
  get canHear(): boolean {
    return this.#wholeSamples !== null;
  }

  /** Audio that nobody asks about: no silence goes on behind it. */
  skip(audio: Uint8Array): void {
    this.#wholeSamples?.skip(audio);
  }

  /**
   * The silences known from this audio on, which comes behind all before: the same ones however it is split, but that one
   * may come in parts that touch. Its first part may begin in the audio before.
   */
  push(audio: Uint8Array): Silence[] {
    if (this.#wholeSamples === null) return [];
    const { first, bytes } = this.#wholeSamples.push(audio);
    const before = this.#open.end === first ? this.#open : { start: first, end: first };
    const found: Silence[] = [];
    // What was long enough before was found before.
    let foundEnd = before.end - before.start >= this.#minSamples ? before.end : before.start;
    for (const run of this.#runsIn(this.#wholeSamples.codec, bytes)) {
      const start = run.start === 0 ? before.start : first + run.start;
      this.#open = { start, end: first + run.end };
      foundEnd = Math.max(foundEnd, start);
      if (this.#open.end - start < this.#minSamples || this.#open.end === foundEnd) continue;
      found.push({
        startSeconds: foundEnd / this.#sampleRate,
        endSeconds: this.#open.end / this.#sampleRate,
      });
    }
    return found;
  }

  /** The silences of a piece: those at its ends, be they empty, and between them those that are long enough; rising. */
  #runsIn(codec: SampleCodec, bytes: Uint8Array): Run[] {
    const width = bytesPerSample(codec);
    const count = bytes.length / width;
    const lead = silentRun(codec, bytes, { from: 0, count, isBackward: false });
    if (lead === count) return [{ start: 0, end: count }];
    const trail = silentRun(codec, bytes, { from: bytes.length - width, count, isBackward: true });
    const lastSound = count - trail - 1;
    return [
      { start: 0, end: lead },
      ...this.#runsBetween(codec, bytes, { firstSound: lead, lastSound }),
      { start: lastSound + 1, end: count },
    ];
  }

  /** A silence that counts holds the sample so far behind the sound before it: most of the others are jumped over. */
  #runsBetween(
    codec: SampleCodec,
    bytes: Uint8Array,
    { firstSound, lastSound }: { readonly firstSound: number; readonly lastSound: number },
  ): Run[] {
    const width = bytesPerSample(codec);
    const minSamples = this.#minSamples;
    const runs: Run[] = [];
    let start = firstSound + 1;
    while (start + minSamples <= lastSound) {
      const ahead = start + minSamples;
      const quiet = silentRun(codec, bytes, {
        from: (ahead - 1) * width,
        count: minSamples,
        isBackward: true,
      });
      if (quiet < minSamples) {
        start = ahead - quiet;
        continue;
      }
      const count = lastSound - ahead;
      const end = ahead + silentRun(codec, bytes, { from: ahead * width, count, isBackward: false });
      runs.push({ start, end });
      start = end + 1;
    }
    return runs;
  }
}
