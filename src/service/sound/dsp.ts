/** The parts that sounds are built of: oscillators, noises, filters, envelopes. All at SAMPLE_RATE, one sample a call. */
import type { Random } from "./random.ts";

/** Hz. */
export const SAMPLE_RATE = 44_100;
const TURN = 2 * Math.PI;
/** Above it a filter's frequency has no meaning at this rate. */
const TOP_HZ = 20_000;

/** Samples one after another, about -1..1; one that is over gives zeros. */
export type Source = () => number;

/** Whole samples in so many seconds. */
export function samplesIn(seconds: number): number {
  return Math.round(seconds * SAMPLE_RATE);
}

/** A second-order filter (the RBJ cookbook's), which may be retuned between samples. */
export class Filter {
  #b0 = 1;
  #b1 = 0;
  #b2 = 0;
  #a1 = 0;
  #a2 = 0;
  #z1 = 0;
  #z2 = 0;

  static lowPass(hz: number, q = Math.SQRT1_2): Filter {
    return new Filter().tuneLowPass(hz, q);
  }

  static highPass(hz: number, q = Math.SQRT1_2): Filter {
    return new Filter().tuneHighPass(hz, q);
  }

  /** Gain 1 at the middle. */
  static bandPass(hz: number, q: number): Filter {
    return new Filter().tuneBandPass(hz, q);
  }

  tuneLowPass(hz: number, q = Math.SQRT1_2): this {
    const { cos, alpha } = angles(hz, q);
    return this.#set([(1 - cos) / 2, 1 - cos, (1 - cos) / 2], cos, alpha);
  }

  tuneHighPass(hz: number, q = Math.SQRT1_2): this {
    const { cos, alpha } = angles(hz, q);
    return this.#set([(1 + cos) / 2, -1 - cos, (1 + cos) / 2], cos, alpha);
  }

  tuneBandPass(hz: number, q: number): this {
    const { cos, alpha } = angles(hz, q);
    return this.#set([alpha, 0, -alpha], cos, alpha);
  }

  run(input: number): number {
    const output = this.#b0 * input + this.#z1;
    this.#z1 = this.#b1 * input - this.#a1 * output + this.#z2;
    this.#z2 = this.#b2 * input - this.#a2 * output;
    return output;
  }

  #set(b: readonly [number, number, number], cos: number, alpha: number): this {
    const a0 = 1 + alpha;
    this.#b0 = b[0] / a0;
    this.#b1 = b[1] / a0;
    this.#b2 = b[2] / a0;
    this.#a1 = (-2 * cos) / a0;
    this.#a2 = (1 - alpha) / a0;
    return this;
  }
}

function angles(hz: number, q: number): { readonly cos: number; readonly alpha: number } {
  const angle = (TURN * Math.min(TOP_HZ, Math.max(5, hz))) / SAMPLE_RATE;
  return { cos: Math.cos(angle), alpha: Math.sin(angle) / (2 * q) };
}

/** Resonances side by side, as of a mouth or the box of a violin. */
export function throat(
  resonances: readonly (readonly [hz: number, q: number, gain: number])[],
): (input: number) => number {
  const filters = resonances.map(([hz, q, gain]) => ({ filter: Filter.bandPass(hz, q), gain }));
  return (input) => {
    let sum = 0;
    for (const { filter, gain } of filters) sum += filter.run(input) * gain;
    return sum;
  };
}

/** Noise that falls by 3 dB an octave (Kellet's filter). */
export function pinkNoise(random: Random): Source {
  let low = 0;
  let middle = 0;
  let high = 0;
  return () => {
    const white = random.signed();
    low = 0.99765 * low + white * 0.099046;
    middle = 0.963 * middle + white * 0.2965164;
    high = 0.57 * high + white * 1.0526913;
    return (low + middle + high + white * 0.1848) * 0.22;
  };
}

/** Noise that falls by 6 dB an octave. */
export function brownNoise(random: Random): Source {
  let level = 0;
  return () => {
    level = level * 0.996 + random.signed() * 0.06;
    return level;
  };
}

/** Clicks at random times, -1..1 high. */
export function dust(random: Random, perSecond: number): Source {
  const chance = perSecond / SAMPLE_RATE;
  return () => (random.unit() < chance ? random.signed() : 0);
}

/** Moves smoothly between random levels 0..1, to a new one `hz` times a second. */
export function wander(random: Random, hz: number): Source {
  const step = hz / SAMPLE_RATE;
  let at = 1;
  let from = random.unit();
  let to = random.unit();
  return () => {
    at += step;
    if (at >= 1) {
      at -= Math.floor(at);
      from = to;
      to = random.unit();
    }
    return from + (to - from) * at * at * (3 - 2 * at);
  };
}

/** A tone whose frequency (Hz) is given with every sample. */
export type Tone = (hz: number) => number;

export function sine(phase = 0): Tone {
  let at = phase;
  return (hz) => {
    at += hz / SAMPLE_RATE;
    at -= Math.floor(at);
    return Math.sin(TURN * at);
  };
}

/** A sawtooth with rounded steps (PolyBLEP), so that high ones alias little. */
export function saw(phase = 0): Tone {
  let at = phase;
  return (hz) => {
    const step = hz / SAMPLE_RATE;
    at += step;
    at -= Math.floor(at);
    return 2 * at - 1 - polyBlep(at, step);
  };
}

/** A square wave with rounded steps. */
export function square(): Tone {
  const rising = saw(0);
  const falling = saw(0.5);
  return (hz) => (rising(hz) - falling(hz)) / 1.2;
}

function polyBlep(at: number, step: number): number {
  if (at < step) {
    const part = at / step;
    return part + part - part * part - 1;
  }
  if (at > 1 - step) {
    const part = (at - 1) / step;
    return part * part + part + part + 1;
  }
  return 0;
}

/** From 1 down, to a thousandth (-60 dB) after `seconds`. */
export function decay(seconds: number): Source {
  const factor = Math.exp(-6.9 / Math.max(1, seconds * SAMPLE_RATE));
  let level = 1 / factor;
  return () => {
    level *= factor;
    return level;
  };
}

/** Up in `riseSeconds`, then down to a thousandth in `fallSeconds`. */
export function swell(riseSeconds: number, fallSeconds: number): Source {
  const rise = Math.max(1, samplesIn(riseSeconds));
  const falling = decay(fallSeconds);
  let at = 0;
  return () => {
    if (at >= rise) return falling();
    at += 1;
    return at / rise;
  };
}

/** From one value to another in so many seconds, by equal ratios; then it stays. */
export function glide(from: number, to: number, seconds: number): Source {
  const samples = Math.max(1, samplesIn(seconds));
  const factor = (to / from) ** (1 / samples);
  let value = from;
  let left = samples;
  return () => {
    if (left > 0) {
      left -= 1;
      value *= factor;
    }
    return value;
  };
}

/** One ringing part of a struck thing. */
export interface Mode {
  readonly hz: number;
  readonly gain: number;
  /** Until it has fallen by 60 dB. */
  readonly seconds: number;
}

/** What a blow leaves ringing: decaying sines that all begin at zero. */
export function ringing(modes: readonly Mode[]): Source {
  const heard = modes.filter((mode) => mode.hz < TOP_HZ);
  const count = heard.length;
  const current = new Float64Array(count);
  const former = new Float64Array(count);
  const turn = new Float64Array(count);
  const loss = new Float64Array(count);
  for (const [index, { hz, gain, seconds }] of heard.entries()) {
    const angle = (TURN * hz) / SAMPLE_RATE;
    const radius = Math.exp(-6.9 / (seconds * SAMPLE_RATE));
    turn[index] = 2 * radius * Math.cos(angle);
    loss[index] = radius * radius;
    // The sample before the first: the recursion then gives gain * sin(0), gain * sin(angle)...
    former[index] = (-gain * Math.sin(angle)) / radius;
  }
  return () => {
    let sum = 0;
    for (let index = 0; index < count; index += 1) {
      const value = current[index] as number;
      sum += value;
      current[index] = (turn[index] as number) * value - (loss[index] as number) * (former[index] as number);
      former[index] = value;
    }
    return sum;
  };
}

/** Rounds off what is beyond -1..1. */
export function saturate(value: number): number {
  return Math.tanh(value);
}

const LINE_SAMPLES = [1559, 1949, 2447, 2971] as const;

/** A room's echoes: four lines that feed each other. `seconds`: until they have fallen by 60 dB. */
export function reverb(seconds: number): (input: number) => number {
  const lines = LINE_SAMPLES.map((samples) => ({
    echoes: new Float32Array(samples),
    gain: 10 ** ((-3 * samples) / (seconds * SAMPLE_RATE)),
    at: 0,
    damped: 0,
  }));
  return (input) => {
    let sum = 0;
    let output = 0;
    for (const line of lines) {
      const echo = line.echoes[line.at] as number;
      line.damped += (echo - line.damped) * 0.55;
      sum += line.damped * line.gain;
      output += echo;
    }
    // A Householder matrix: as much energy comes out as goes in, whatever the gains take.
    for (const line of lines) {
      line.echoes[line.at] = input + line.damped * line.gain - sum / 2;
      line.at = line.at + 1 === line.echoes.length ? 0 : line.at + 1;
    }
    return output / 2;
  };
}
