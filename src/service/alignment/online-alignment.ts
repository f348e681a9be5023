/**
 * Finds the words of a text in its audio while that comes. A word is given once, when its end lies far enough before the
 * end of the audio; what was given is never moved.
 */
import type { FoundWord } from "../../timing/aligner.ts";
import { CEPSTRUM_SIZE, Cepstra, COEFFICIENTS } from "./cepstra.ts";
import { CHANGE_FRAMES, FEATURES, fillFeatures, levelsOf, type VoiceLevels } from "./features.ts";
import { bandwidthOf, HOP_SECONDS } from "./mel-spectrum.ts";
import { PathFinder } from "./path-finder.ts";
import type { ReferenceModel } from "./reference-model.ts";

/** A word is given this long behind its end: what follows shows best where it was. */
const GIVEN_BEHIND_SECONDS = 0.26;
/** Frames at which all audio so far is looked at again: the first sounds say most of what a voice is like. */
const AGAIN_FRAMES = [24, 40, 64, 100, 160, 250] as const;

export class OnlineAlignment {
  readonly #model: ReferenceModel;
  readonly #sampleRate: number;
  readonly #cepstra: Cepstra;
  #samples = 0;
  #levels: VoiceLevels;
  #features = new Float32Array(0);
  #finder: PathFinder;
  #agains = 0;
  /** Words that were given. */
  #given = 0;
  #givenFrame = 0;

  constructor(model: ReferenceModel, sampleRate: number) {
    this.#model = model;
    this.#sampleRate = sampleRate;
    this.#cepstra = new Cepstra(sampleRate, bandwidthOf(sampleRate));
    this.#levels = levelsOf(new Float32Array(0), 0, model.meanCoefficients);
    this.#finder = new PathFinder(model);
  }

  /** Whether the audio says the text, as far as it has come. */
  get isLike(): boolean {
    return this.#finder.isLike;
  }

  /** Samples behind all before; the words that are given now. */
  push(samples: Int16Array): FoundWord[] {
    this.#samples += samples.length;
    this.#cepstra.push(samples);
    this.#advance(this.#cepstra.count - CHANGE_FRAMES);
    const givenSeconds = this.#samples / this.#sampleRate - GIVEN_BEHIND_SECONDS;
    const until = Math.floor(givenSeconds / HOP_SECONDS);
    const found: FoundWord[] = [];
    if (this.#finder.isSurelyUnlike) return found;
    for (; this.#given < this.#model.words.length; this.#given += 1) {
      const word = this.#given;
      const end = Math.min(this.#finder.endOf(word), this.#finder.startOf(word + 1));
      if (!(end <= until)) break;
      found.push(this.#found(word, this.#finder.startOf(word), end));
    }
    return found;
  }

  /** The audio is over: all words that it has, and were not given. */
  finish(): FoundWord[] {
    this.#advance(this.#cepstra.count);
    this.#finder.finish();
    const { words } = this.#model;
    const found: FoundWord[] = [];
    for (; this.#given < words.length; this.#given += 1) {
      const word = this.#given;
      const start = this.#finder.startOf(word);
      if (start === Number.POSITIVE_INFINITY) break;
      const end = Math.min(this.#finder.endOf(word), this.#finder.startOf(word + 1), this.#finder.frame);
      found.push(this.#found(word, start, end));
    }
    return found;
  }

  #found(word: number, startFrame: number, endFrame: number): FoundWord {
    const { start, end } = this.#model.words[word] ?? { start: 0, end: 0 };
    const from = Math.max(Math.min(startFrame, endFrame), this.#givenFrame);
    this.#givenFrame = Math.max(endFrame, from);
    return { start, end, startSeconds: from * HOP_SECONDS, endSeconds: this.#givenFrame * HOP_SECONDS };
  }

  #advance(to: number): void {
    const { count, values } = this.#cepstra;
    const agains = AGAIN_FRAMES.findLastIndex((frames) => to >= frames) + 1;
    if (agains > this.#agains) {
      this.#agains = agains;
      this.#levels = levelsOf(values, count, this.#model.meanCoefficients);
      this.#finder = new PathFinder(this.#model);
    }
    const from = this.#finder.frame;
    if (to <= from) return;
    if (to * FEATURES > this.#features.length) {
      const larger = new Float32Array(2 * to * FEATURES);
      larger.set(this.#features);
      this.#features = larger;
    }
    fillFeatures(this.#features, values, this.#levels, { from, to, count });
    for (let frame = from; frame < to; frame += 1) {
      const level = values[frame * CEPSTRUM_SIZE + COEFFICIENTS] ?? 0;
      this.#finder.next(this.#features, level - this.#levels.loud);
    }
  }
}
