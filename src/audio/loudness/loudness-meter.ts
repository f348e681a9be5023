/** How loud speech is, as EBU R128 and ITU-R BS.1770 have it: mono, gated, so that its pauses do not count. */
import { KWeighting } from "./k-weighting.ts";

/** Blocks of 400 ms begin every 100 ms. */
const STEP_SECONDS = 0.1;
const STEPS_PER_BLOCK = 4;
const ABSOLUTE_GATE_LUFS = -70;
const RELATIVE_GATE_LU = 10;
/** Blocks that are remembered: a minute. */
const MAX_BLOCKS = 600;
const FULL_SCALE = 32_768;

export interface Loudness {
  /** Mean of the squares, weighted, of the blocks that are speech; full scale is 1. */
  readonly energy: number;
  /** How much speech that is. */
  readonly seconds: number;
}

export class LoudnessMeter {
  readonly #filter: KWeighting;
  readonly #stepSamples: number;
  #sum = 0;
  #count = 0;
  /** Energies of the last steps; fewer than a block has. */
  #steps: number[] = [];
  #blocks: number[] = [];

  constructor(sampleRate: number) {
    this.#filter = new KWeighting(sampleRate);
    this.#stepSamples = Math.round(sampleRate * STEP_SECONDS);
  }

  push(samples: Int16Array): void {
    for (const sample of samples) {
      const heard = this.#filter.push(sample / FULL_SCALE);
      this.#sum += heard * heard;
      this.#count += 1;
      if (this.#count === this.#stepSamples) this.#endStep();
    }
  }

  /** What the last minute measures; null: nothing was heard. */
  get loudness(): Loudness | null {
    const absolute = energyOf(ABSOLUTE_GATE_LUFS);
    const heard = this.#blocks.filter((energy) => energy > absolute);
    const relative = mean(heard) * 10 ** (-RELATIVE_GATE_LU / 10);
    const speech = heard.filter((energy) => energy > relative);
    if (speech.length === 0) return null;
    return { energy: mean(speech), seconds: (speech.length + STEPS_PER_BLOCK - 1) * STEP_SECONDS };
  }

  #endStep(): void {
    this.#steps.push(this.#sum / this.#count);
    this.#sum = 0;
    this.#count = 0;
    if (this.#steps.length < STEPS_PER_BLOCK) return;
    this.#blocks.push(mean(this.#steps));
    this.#steps = this.#steps.slice(1);
    if (this.#blocks.length > MAX_BLOCKS) this.#blocks.shift();
  }
}

export function lufsOf(energy: number): number {
  return -0.691 + 10 * Math.log10(energy);
}

function energyOf(lufs: number): number {
  return 10 ** ((lufs + 0.691) / 10);
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length);
}
