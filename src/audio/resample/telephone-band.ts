/**
 * Leaves of sound what a telephone passes: 300 to 3400 Hz, between Butterworth filters of high order. They have the least delay:
 * half a millisecond in the middle of the band, where one of linear phase has several.
 */

const LOW_HZ = 300;
const HIGH_HZ = 3400;
/** 24 dB below half of the lowest frequency. */
const HIGH_PASS_ORDER = 4;
/** 30 dB at 4600 Hz, from where sound would come back as another one at 8 kHz. */
const LOW_PASS_ORDER = 10;
/** Nothing that is left below this is heard; numbers that go on getting smaller are slow. */
const STILL = 1e-6;

/** The second order that filters are made of, with what it has in its delays. */
interface Section {
  readonly b0: number;
  readonly b1: number;
  readonly a1: number;
  readonly a2: number;
  s1: number;
  s2: number;
}

export class TelephoneBand {
  #rate = 0;
  #sections: readonly Section[] = [];
  #values = new Float64Array(0);

  /** As many samples as come in; they go on with those before, unless they have another rate. */
  push(pcm: Int16Array, rate: number): Int16Array {
    if (rate !== this.#rate) {
      this.#rate = rate;
      this.#sections = sectionsFor(rate);
    }
    if (this.#values.length < pcm.length) this.#values = new Float64Array(pcm.length);
    const values = this.#values.subarray(0, pcm.length);
    values.set(pcm);
    for (const section of this.#sections) filter(values, section);
    return Int16Array.from(values, (value) => Math.max(-32_768, Math.min(32_767, Math.round(value))));
  }

  /** What comes next goes on with nothing. */
  reset(): void {
    for (const section of this.#sections) {
      section.s1 = 0;
      section.s2 = 0;
    }
  }
}

function filter(values: Float64Array, section: Section): void {
  const { b0, b1, a1, a2 } = section;
  let { s1, s2 } = section;
  for (let index = 0; index < values.length; index += 1) {
    const value = values[index] ?? 0;
    const passed = b0 * value + s1;
    s1 = b1 * value - a1 * passed + s2;
    s2 = b0 * value - a2 * passed;
    values[index] = passed;
  }
  section.s1 = Math.abs(s1) < STILL ? 0 : s1;
  section.s2 = Math.abs(s2) < STILL ? 0 : s2;
}

function sectionsFor(rate: number): Section[] {
  return [
    ...Array.from({ length: HIGH_PASS_ORDER / 2 }, (_, at) => section(rate, "high", at)),
    ...Array.from({ length: LOW_PASS_ORDER / 2 }, (_, at) => section(rate, "low", at)),
  ];
}

/** By the bilinear transform, which leaves the edge of the band where it is. */
function section(rate: number, pass: "high" | "low", at: number): Section {
  const order = pass === "high" ? HIGH_PASS_ORDER : LOW_PASS_ORDER;
  const k = Math.tan((Math.PI * (pass === "high" ? LOW_HZ : HIGH_HZ)) / rate);
  const damping = 2 * Math.sin(((2 * at + 1) * Math.PI) / (2 * order));
  const a0 = 1 + damping * k + k * k;
  const b0 = (pass === "high" ? 1 : k * k) / a0;
  return {
    b0,
    b1: pass === "high" ? -2 * b0 : 2 * b0,
    a1: (2 * (k * k - 1)) / a0,
    a2: (1 - damping * k + k * k) / a0,
    s1: 0,
    s2: 0,
  };
}
