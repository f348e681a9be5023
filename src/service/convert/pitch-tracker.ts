/**
 * The pitch of speech over time: normalised cross-correlation of the low band gives candidates every 5 ms, and the
 * cheapest path through them (Viterbi, decided 100 ms late) is the pitch. A path, not the best peak of each frame: a
 * single frame often prefers twice or half the period, a whole voiced stretch hardly ever does.
 */
import { SampleWindow } from "./sample-window.ts";
import { UsualVoice } from "./usual-voice.ts";

/** Hz: of everything in this folder. Speech has nothing above 12 kHz that this transformation would need. */
export const WORK_RATE = 24_000;
/** Samples at WORK_RATE from one frame's centre to the next: 5 ms. */
export const FRAME_SAMPLES = 120;
/** Hz. */
const MIN_HZ = 55;
const MAX_HZ = 520;

const DECIMATION = 3;
const LOW_RATE = WORK_RATE / DECIMATION;
const LOW_HOP = FRAME_SAMPLES / DECIMATION;
const MIN_LAG = Math.floor(LOW_RATE / MAX_HZ);
const MAX_LAG = Math.ceil(LOW_RATE / MIN_HZ);
/** Samples that are compared with as many a lag later: 25 ms. */
const COMPARED = 200;
/** Low-rate samples that a frame looks to either side. */
const REACH = Math.ceil((COMPARED + MAX_LAG) / 2) + 2;

const FILTER_TAPS = 61;
const FILTER_CUTOFF_HZ = 1300;

const MAX_CANDIDATES = 5;
const MIN_CORRELATION = 0.3;
/** Energy of a compared sample below which correlations count for less: about -66 dB of full scale. */
const SILENCE_POWER = 2.5e-7;
/** How much less the longest period counts than the shortest: twice the period is always as good a match. */
const LAG_WEIGHT = 0.25;
/** What a jump of one octave costs, and a change between voiced and unvoiced. */
const OCTAVE_COST = 0.8;
const VOICING_COST = 0.18;
/** Makes a frame unvoiced unless it correlates better than about 0.55. */
const UNVOICED_BIAS = 0.02;
/** Frames before the path is decided: 100 ms. */
const DECIDED_AFTER = 20;

interface Candidate {
  /** 0: unvoiced. */
  readonly hz: number;
  readonly cost: number;
}

interface Step {
  readonly candidates: readonly Candidate[];
  /** Cost of the cheapest path that ends in each candidate, and where in the step before it came from. */
  readonly totals: readonly number[];
  readonly from: readonly number[];
}

export class PitchTracker {
  readonly #input = new SampleWindow();
  readonly #low = new SampleWindow();
  readonly #filter = lowPass();
  readonly #usual = new UsualVoice();
  #steps: Step[] = [];
  #nextFrame = 0;

  /** The pitch, Hz, of the frames that are decided now; 0 where unvoiced. Frame k's centre is sample k * FRAME_SAMPLES. */
  push(samples: Float32Array): number[] {
    this.#input.push(samples);
    return this.#run();
  }

  /** The frames that are left, as if silence followed. Nothing can be pushed after it. */
  flush(): number[] {
    const frames = Math.ceil(this.#input.end / FRAME_SAMPLES) + 1;
    this.#input.growTo(this.#input.end + (REACH + LOW_HOP) * DECIMATION + FILTER_TAPS);
    const decided = this.#run();
    decided.push(...this.#bestPath());
    this.#steps = [];
    const surplus = this.#nextFrame - frames;
    return surplus > 0 ? decided.slice(0, Math.max(0, decided.length - surplus)) : decided;
  }

  #run(): number[] {
    this.#decimate();
    const decided: number[] = [];
    for (; this.#nextFrame * LOW_HOP + REACH < this.#low.end; this.#nextFrame += 1) {
      this.#addStep(this.#candidates(this.#nextFrame * LOW_HOP));
      if (this.#steps.length <= DECIDED_AFTER) continue;
      const hz = this.#bestPath()[0] ?? 0;
      if (hz > 0) this.#usual.learn(hz);
      decided.push(hz);
      this.#steps.shift();
    }
    this.#low.dropBefore(this.#nextFrame * LOW_HOP - REACH);
    return decided;
  }

  #decimate(): void {
    const half = (FILTER_TAPS - 1) / 2;
    const from = this.#low.end;
    const to = Math.max(from, Math.floor((this.#input.end - half - 1) / DECIMATION));
    const made = new Float32Array(to - from);
    const input = this.#input.slice(from * DECIMATION - half, to * DECIMATION + half);
    for (let index = 0; index < made.length; index += 1) {
      let sum = 0;
      const first = index * DECIMATION;
      for (let tap = 0; tap < FILTER_TAPS; tap += 1)
        sum += (this.#filter[tap] ?? 0) * (input[first + tap] ?? 0);
      made[index] = sum;
    }
    this.#low.push(made);
    this.#input.dropBefore(to * DECIMATION - half);
  }

  #candidates(centre: number): Candidate[] {
    const samples = this.#low.slice(centre - REACH, centre + REACH);
    const powers = powersOf(samples);
    // Silence is no pitch, and need not be searched for one.
    const power = (powers.at(-1) ?? 0) / samples.length;
    this.#usual.hear(power);
    if (power < SILENCE_POWER) return [{ hz: 0, cost: UNVOICED_BIAS }];
    const correlations = new Float32Array(MAX_LAG + 2);
    for (let lag = MIN_LAG - 1; lag <= MAX_LAG + 1; lag += 1) {
      const start = REACH - Math.floor((COMPARED + lag) / 2);
      correlations[lag] = correlation(samples, powers, { start, lag });
    }
    const found: Candidate[] = [];
    let best = 0;
    for (let lag = MIN_LAG; lag <= MAX_LAG; lag += 1) {
      const here = correlations[lag] ?? 0;
      const before = correlations[lag - 1] ?? 0;
      const after = correlations[lag + 1] ?? 0;
      if (here < MIN_CORRELATION || here < before || here <= after) continue;
      const bend = before - 2 * here + after;
      const offset = bend === 0 ? 0 : (0.5 * (before - after)) / bend;
      best = Math.max(best, here);
      const hz = LOW_RATE / (lag + offset);
      found.push({ hz, cost: 1 - here * (1 - (LAG_WEIGHT * lag) / MAX_LAG) + this.#usual.costOf(hz) });
    }
    found.sort((a, b) => a.cost - b.cost);
    return [{ hz: 0, cost: best + UNVOICED_BIAS }, ...found.slice(0, MAX_CANDIDATES)];
  }

  #addStep(candidates: readonly Candidate[]): void {
    const before = this.#steps.at(-1);
    const totals: number[] = [];
    const from: number[] = [];
    for (const candidate of candidates) {
      let cheapest = before === undefined ? 0 : Number.POSITIVE_INFINITY;
      let origin = 0;
      for (const [index, other] of (before?.candidates ?? []).entries()) {
        const total = (before?.totals[index] ?? 0) + changeCost(other.hz, candidate.hz);
        if (total >= cheapest) continue;
        cheapest = total;
        origin = index;
      }
      totals.push(cheapest + candidate.cost);
      from.push(origin);
    }
    // Only differences count: kept small so that hours of frames add up to no large number.
    const least = Math.min(...totals);
    this.#steps.push({ candidates, totals: totals.map((total) => total - least), from });
  }

  /** The pitch of every undecided frame on the path that is the cheapest so far. */
  #bestPath(): number[] {
    const path: number[] = [];
    const totals = this.#steps.at(-1)?.totals ?? [];
    let index = totals.indexOf(Math.min(...totals));
    for (let at = this.#steps.length - 1; at >= 0; at -= 1) {
      const step = this.#steps[at];
      path.push(step?.candidates[index]?.hz ?? 0);
      index = step?.from[index] ?? 0;
    }
    return path.reverse();
  }
}

/** The median of the voiced frames, Hz; null where there are none. */
export function medianPitch(frames: readonly number[]): number | null {
  const voiced = frames.filter((hz) => hz > 0).sort((a, b) => a - b);
  return voiced[Math.floor(voiced.length / 2)] ?? null;
}

function changeCost(from: number, to: number): number {
  if (from === 0 && to === 0) return 0;
  if (from === 0 || to === 0) return VOICING_COST;
  return OCTAVE_COST * Math.abs(Math.log2(to / from));
}

/** `powers[k]`: sum of the squares of the first k samples. */
function correlation(
  samples: Float32Array,
  powers: Float64Array,
  { start, lag }: { readonly start: number; readonly lag: number },
): number {
  let product = 0;
  // Every other sample stands for two: nothing is left above a sixth of the rate.
  for (let at = start; at < start + COMPARED; at += 2) {
    product += 2 * (samples[at] ?? 0) * (samples[at + lag] ?? 0);
  }
  const floor = COMPARED * SILENCE_POWER;
  const first = (powers[start + COMPARED] ?? 0) - (powers[start] ?? 0) + floor;
  const second = (powers[start + lag + COMPARED] ?? 0) - (powers[start + lag] ?? 0) + floor;
  return product / Math.sqrt(first * second);
}

function powersOf(samples: Float32Array): Float64Array {
  const powers = new Float64Array(samples.length + 1);
  let sum = 0;
  for (let at = 0; at < samples.length; at += 1) {
    const sample = samples[at] ?? 0;
    sum += sample * sample;
    powers[at + 1] = sum;
  }
  return powers;
}

function lowPass(): Float32Array {
  const half = (FILTER_TAPS - 1) / 2;
  const taps = Float32Array.from({ length: FILTER_TAPS }, (_, index) => {
    const x = (2 * FILTER_CUTOFF_HZ * (index - half)) / WORK_RATE;
    const sinc = x === 0 ? 1 : Math.sin(Math.PI * x) / (Math.PI * x);
    return sinc * (0.5 + 0.5 * Math.cos((Math.PI * (index - half)) / (half + 1)));
  });
  const sum = taps.reduce((total, tap) => total + tap, 0);
  return taps.map((tap) => tap / sum);
}
