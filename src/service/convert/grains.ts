/**
 * Puts speech together again from grains of two periods each (pitch-synchronous overlap and add): how densely grains are
 * laid is the new pitch, how fast each is read is the new size of the vocal tract. Unvoiced grains stay as they are.
 */
import type { Mark } from "./epochs.ts";
import type { SampleWindow } from "./sample-window.ts";

export interface Ratios {
  /** New pitch by old. */
  readonly pitch: number;
  /** New formants by old: above 1 is a shorter vocal tract. */
  readonly formants: number;
  /** `size` as in Manner; `middle` is the source's usual period in samples. */
  readonly melody?: { readonly size: number; readonly middle: number };
}

/** Samples that a grain reaches to either side of its place, at the most. */
export const GRAIN_REACH = 900;

interface Grain {
  readonly mark: Mark;
  /** Samples to the marks beside it: the slopes of its window. */
  readonly left: number;
  readonly right: number;
}

export class GrainSynthesis {
  readonly #input: SampleWindow;
  readonly #output: SampleWindow;
  readonly #ratios: Ratios;
  #marks: Mark[] = [];
  /** Where the last grain was laid, and where the next one belongs. */
  #place = Number.NEGATIVE_INFINITY;
  #next = 0;

  /** Takes from `input`, adds to `output`; both number samples alike. */
  constructor(input: SampleWindow, output: SampleWindow, ratios: Ratios) {
    this.#input = input;
    this.#output = output;
    this.#ratios = ratios;
  }

  /** Samples of the output before this number do not change any more. */
  get settled(): number {
    return Math.max(0, Math.floor(this.#next) - GRAIN_REACH);
  }

  /** Samples of the input before this number are not looked at any more. */
  get needed(): number {
    return Math.max(0, (this.#marks[0]?.at ?? 0) - GRAIN_REACH);
  }

  push(marks: readonly Mark[]): void {
    this.#marks.push(...marks);
    // A grain needs the mark behind it, and the choice of the nearest one another.
    while (this.#marks.length >= 4 && this.#next <= (this.#marks.at(-3)?.at ?? 0)) this.#layNext();
  }

  #layNext(): void {
    const index = this.#nearest(this.#next);
    const mark = this.#marks[index];
    const before = this.#marks[index - 1];
    const after = this.#marks[index + 1];
    if (mark === undefined) return;
    const right = (after?.at ?? mark.at + mark.period) - mark.at;
    const left = before === undefined ? right : mark.at - before.at;
    // Unvoiced grains go where they came from, unless that is where the last grain already is.
    const place = mark.isVoiced || mark.at <= this.#place ? this.#next : mark.at;
    this.#lay({ mark, left, right }, place);
    this.#place = place;
    // The marks' own distance: with a ratio of 1 every grain comes to lie where it was.
    const step = mark.isVoiced ? right / (this.#ratios.pitch * this.#melodyAt(right)) : right;
    this.#next = place + Math.max(8, step);
    if (!mark.isVoiced && after !== undefined && this.#next < after.at) this.#next = after.at;
    // One mark before the nearest is kept: the next grain may be the same one again.
    if (index > 2) this.#marks.splice(0, index - 2);
  }

  /** By how much the pitch of a period moves away from the middle, or towards it: at most an octave. */
  #melodyAt(period: number): number {
    const { melody } = this.#ratios;
    if (melody === undefined) return 1;
    return Math.min(2, Math.max(0.5, (melody.middle / period) ** (melody.size - 1)));
  }

  #nearest(place: number): number {
    let best = 0;
    for (let index = 1; index < this.#marks.length - 1; index += 1) {
      const distance = Math.abs((this.#marks[index]?.at ?? 0) - place);
      if (distance <= Math.abs((this.#marks[best]?.at ?? 0) - place)) best = index;
      else break;
    }
    return best;
  }

  #lay({ mark, left, right }: Grain, place: number): void {
    const speed = mark.isVoiced ? this.#ratios.formants : 1;
    const from = Math.max(Math.ceil(place - left / speed), Math.ceil(place - GRAIN_REACH));
    const to = Math.min(Math.floor(place + right / speed), Math.floor(place + GRAIN_REACH));
    this.#output.growTo(to + 1);
    for (let at = from; at <= to; at += 1) {
      const offset = (at - place) * speed;
      const slope = offset < 0 ? left : right;
      const window = 0.5 + 0.5 * Math.cos((Math.PI * offset) / slope);
      this.#output.add(at, window * this.#read(mark.at + offset));
    }
  }

  /** Between samples: the cubic through four of them (Catmull-Rom). */
  #read(position: number): number {
    const whole = Math.floor(position);
    const part = position - whole;
    const here = this.#input.at(whole);
    if (part === 0) return here;
    const before = this.#input.at(whole - 1);
    const after = this.#input.at(whole + 1);
    const last = this.#input.at(whole + 2);
    const cubic = 3 * (here - after) + last - before;
    const square = 2 * before - 5 * here + 4 * after - last;
    return here + 0.5 * part * (after - before + part * (square + part * cubic));
  }
}
