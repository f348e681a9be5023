/** What `similarity_boost`, `use_speaker_boost` and a seed do to finished samples: how bright and how loud the voice is. */

export interface TimbreSettings {
  /** 0-1; absent as 0.75, which leaves the voice as it is. Each 0.25 is 4 dB above about 1.5 kHz. */
  readonly similarity?: number | undefined;
  /** False: 4 dB quieter. Absent as true, which leaves the voice as it is. */
  readonly speakerBoost?: boolean | undefined;
}

const CORNER_HZ = 1500;
const USUAL_SIMILARITY = 0.75;
const DB_A_SIMILARITY = 16;
const UNBOOSTED_DB = -4;

export class Timbre {
  readonly #share: number;
  readonly #level: number;
  readonly #treble: number;
  #low = 0;

  /** `level`: of all samples, see variation.ts. */
  constructor(sampleRate: number, settings: TimbreSettings, level = 1) {
    const { similarity = USUAL_SIMILARITY, speakerBoost = true } = settings;
    this.#share = 1 - Math.exp((-2 * Math.PI * CORNER_HZ) / sampleRate);
    this.#treble = 10 ** (((similarity - USUAL_SIMILARITY) * DB_A_SIMILARITY) / 20);
    this.#level = level * (speakerBoost ? 1 : 10 ** (UNBOOSTED_DB / 20));
  }

  /** 16-bit samples; the same array where nothing is changed. */
  push(pcm: Int16Array): Int16Array {
    if (this.#treble === 1 && this.#level === 1) return pcm;
    return pcm.map((sample) => {
      this.#low += this.#share * (sample - this.#low);
      const made = this.#level * (this.#low + this.#treble * (sample - this.#low));
      return Math.max(-32_768, Math.min(32_767, Math.round(made)));
    });
  }
}
