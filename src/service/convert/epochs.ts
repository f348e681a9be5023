/**
 * Marks the periods of speech: one mark a period where it is voiced, each at the same place of its period as the one
 * before (by correlation, drawn to the peak), and one every 5 ms elsewhere. Marks are where grains are taken (grains.ts).
 */
import { FRAME_SAMPLES, WORK_RATE } from "./pitch-tracker.ts";
import type { SampleWindow } from "./sample-window.ts";

export interface Mark {
  /** Sample number. */
  readonly at: number;
  /** Samples; of unvoiced stretches the distance of their marks. */
  readonly period: number;
  readonly isVoiced: boolean;
}

const UNVOICED_STEP = 120;
/** The next mark is looked for this far around where the pitch says it is, as a part of the period. */
const SEARCH = 0.15;
/** How much a mark is drawn to the period's peak: without it small errors add up over a long vowel. */
const PEAK_PULL = 0.15;
/** Samples behind a mark that finding the next one may look at: the longest period and a half, and the search. */
export const LOOK_AHEAD = 900;

export class EpochMarker {
  readonly #input: SampleWindow;
  readonly #frames: number[] = [];
  #firstFrame = 0;
  #last: Mark | null = null;
  /** Which way this stretch's peaks point. */
  #polarity = 1;

  /** Reads the samples of `input`, which holds them from the last mark minus a period on. */
  constructor(input: SampleWindow) {
    this.#input = input;
  }

  /** The marks that can be set now that the pitch of these frames is known; `isEnd`: no more samples come. */
  push(frames: readonly number[], isEnd = false): Mark[] {
    this.#frames.push(...frames);
    const until = isEnd
      ? this.#input.end
      : Math.min(this.#input.end, (this.#firstFrame + this.#frames.length) * FRAME_SAMPLES) - LOOK_AHEAD;
    const marks: Mark[] = [];
    while ((this.#last?.at ?? 0) < until) {
      const mark = this.#next();
      marks.push(mark);
      this.#last = mark;
    }
    const passed = Math.floor((this.#last?.at ?? 0) / FRAME_SAMPLES) - 2 - this.#firstFrame;
    if (passed > 0) {
      this.#frames.splice(0, passed);
      this.#firstFrame += passed;
    }
    return marks;
  }

  #next(): Mark {
    const last = this.#last;
    if (last === null) return { at: 0, period: UNVOICED_STEP, isVoiced: false };
    const period = this.#periodAt(last.at + (last.isVoiced ? last.period : UNVOICED_STEP));
    if (period === null) {
      return {
        at: last.at + (last.isVoiced ? Math.round(last.period) : UNVOICED_STEP),
        period: UNVOICED_STEP,
        isVoiced: false,
      };
    }
    const at = last.isVoiced ? this.#follow(last.at, period) : this.#firstPeak(last.at, period);
    return { at, period, isVoiced: true };
  }

  /** The largest sample of the first period of a voiced stretch. */
  #firstPeak(after: number, period: number): number {
    const from = after + Math.round(UNVOICED_STEP / 2);
    let best = from;
    for (let at = from; at < from + period; at += 1) {
      if (Math.abs(this.#input.at(at)) > Math.abs(this.#input.at(best))) best = at;
    }
    this.#polarity = this.#input.at(best) < 0 ? -1 : 1;
    return best;
  }

  #follow(last: number, period: number): number {
    const half = Math.round(period / 2);
    const reach = Math.max(2, Math.round(period * SEARCH));
    const around = Math.round(last + period);
    const model = this.#input.slice(last - half, last + half);
    const there = this.#input.slice(around - reach - half, around + reach + half);
    let largest = 1e-6;
    for (const sample of there) largest = Math.max(largest, sample * this.#polarity);
    let best = around;
    let bestScore = Number.NEGATIVE_INFINITY;
    for (let offset = -reach; offset <= reach; offset += 1) {
      const peak = ((there[reach + offset + half] ?? 0) * this.#polarity) / largest;
      const score = likeness(model, there, reach + offset) + PEAK_PULL * peak;
      if (score <= bestScore) continue;
      bestScore = score;
      best = around + offset;
    }
    return best;
  }

  /** Samples; null where unvoiced. */
  #periodAt(sample: number): number | null {
    const frame = Math.round(sample / FRAME_SAMPLES) - this.#firstFrame;
    const hz = this.#frames[Math.max(0, frame)] ?? 0;
    return hz > 0 ? WORK_RATE / hz : null;
  }
}

function likeness(model: Float32Array, there: Float32Array, offset: number): number {
  let product = 0;
  let first = 1e-9;
  let second = 1e-9;
  for (let at = 0; at < model.length; at += 1) {
    const a = model[at] ?? 0;
    const b = there[at + offset] ?? 0;
    product += a * b;
    first += a * a;
    second += b * b;
  }
  return product / Math.sqrt(first * second);
}
