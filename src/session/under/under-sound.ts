/** One sound under speech: where on the timeline it begins and ends, and how loud it is at each place. */
import { ticksPerSample } from "../../timing/ticks.ts";
import type { SoundSamples } from "./sound-samples.ts";

export interface UnderOptions {
  readonly samples: SoundSamples;
  /** A factor, and another one while something is spoken. */
  readonly gain: number;
  readonly duckedGain: number;
  readonly fadeInTicks: number;
  readonly fadeOutTicks: number;
  /** `speech`: until nothing is queued any more. */
  readonly repeats: "once" | "always" | "speech";
  /** Gives its memory back. Called once or more. */
  readonly onOver: () => void;
}

type UnderOutcome = "done" | "stopped" | "interrupted";

/** Where samples stand that it is added to. */
export interface UnderPlace {
  readonly atTicks: number;
  readonly rate: number;
  /** For each sample how much of the way to the ducked gain it is, 0 to 1. */
  readonly ducked: Float64Array;
}

export class UnderSound {
  readonly id: string;
  readonly options: UnderOptions;
  outcome: UnderOutcome = "done";
  #startTicks: number | null = null;
  /** Where it ends; null: it does not end by itself. */
  #endTicks: number | null = null;
  /** It falls to nothing in so many ticks, from so much of its loudness: it may fall already when it is stopped. */
  #fadeOutTicks: number;
  #fadesFrom = 1;
  #isStopping = false;
  /** It ends so long behind what is made next. */
  #stopInTicks: number | null = null;

  constructor(id: string, options: UnderOptions) {
    this.id = id;
    this.options = options;
    this.#fadeOutTicks = options.fadeOutTicks;
  }

  /** null: nothing of it was made. */
  get startTicks(): number | null {
    return this.#startTicks;
  }
  get endTicks(): number | null {
    return this.#endTicks;
  }

  /** It was asked to end. */
  get isStopping(): boolean {
    return this.#isStopping;
  }

  /** It falls to nothing from where audio is made next. */
  stop(outcome: UnderOutcome, fadeTicks: number = this.options.fadeOutTicks): void {
    if (this.#isStopping && outcome === this.outcome) return;
    this.#isStopping = true;
    this.outcome = outcome;
    this.#stopInTicks = fadeTicks;
  }

  begin(ticks: number): void {
    const { repeats, samples } = this.options;
    this.#startTicks = ticks;
    if (repeats === "once") this.#endTicks = ticks + samples.lengthTicks;
  }

  /** What was made behind this place was not heard: it is made again from there. */
  rewindTo(ticks: number): void {
    if (this.#startTicks !== null) this.#startTicks = Math.min(this.#startTicks, ticks);
  }

  /** Adds it to `values`; 1 is full scale. True where it is over with them. */
  addTo(values: Float64Array, { atTicks, rate, ducked }: UnderPlace): boolean {
    const { samples, gain, duckedGain, fadeInTicks } = this.options;
    const startTicks = this.#startTicks ?? atTicks;
    if (this.#stopInTicks !== null) this.#fallFrom(atTicks, this.#stopInTicks);
    const sampleTicks = ticksPerSample(rate);
    const endTicks = this.#endTicks ?? Number.POSITIVE_INFINITY;
    const own = samples.read(atTicks - startTicks, values.length, rate);
    for (const [index, value] of own.entries()) {
      const ticks = atTicks + index * sampleTicks;
      const fadeIn = fadeInTicks === 0 ? 1 : (ticks - startTicks) / fadeInTicks;
      if (ticks >= endTicks) break;
      const level = gain + (duckedGain - gain) * (ducked[index] ?? 0);
      values[index] = (values[index] ?? 0) + value * level * Math.min(1, fadeIn) * this.#fadeOutAt(ticks);
    }
    return atTicks + values.length * sampleTicks >= endTicks;
  }

  #fallFrom(atTicks: number, fadeTicks: number): void {
    this.#fadesFrom = this.#fadeOutAt(atTicks);
    this.#endTicks = Math.min(this.#endTicks ?? Number.POSITIVE_INFINITY, atTicks + fadeTicks);
    this.#fadeOutTicks = this.#endTicks - atTicks;
    this.#stopInTicks = null;
  }

  #fadeOutAt(ticks: number): number {
    if (this.#endTicks === null || this.#fadeOutTicks === 0) return this.#fadesFrom;
    return this.#fadesFrom * Math.max(0, Math.min(1, (this.#endTicks - ticks) / this.#fadeOutTicks));
  }
}
