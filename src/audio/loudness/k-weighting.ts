/**
 * The filter of ITU-R BS.1770: what the ear hears of each frequency. A shelf for the head, and a high pass. The standard gives
 * it for 48 kHz; from its analog shape it follows for other rates.
 */

interface Biquad {
  readonly b0: number;
  readonly b1: number;
  readonly b2: number;
  readonly a1: number;
  readonly a2: number;
}

const SHELF = { hz: 1681.974450955533, gainDb: 3.999843853973347, q: 0.7071752369554196 };
const SHELF_BAND_EXPONENT = 0.4996667741545416;
const HIGH_PASS = { hz: 38.13547087602444, q: 0.5003270373238773 };

export class KWeighting {
  readonly #shelf: Biquad;
  readonly #highPass: Biquad;
  /** What each of the two has in its delays. */
  #s1 = 0;
  #s2 = 0;
  #h1 = 0;
  #h2 = 0;

  constructor(sampleRate: number) {
    this.#shelf = shelfFor(sampleRate);
    this.#highPass = highPassFor(sampleRate);
  }

  push(sample: number): number {
    const [shelf, pass] = [this.#shelf, this.#highPass];
    const bright = shelf.b0 * sample + this.#s1;
    this.#s1 = shelf.b1 * sample - shelf.a1 * bright + this.#s2;
    this.#s2 = shelf.b2 * sample - shelf.a2 * bright;
    const heard = pass.b0 * bright + this.#h1;
    this.#h1 = pass.b1 * bright - pass.a1 * heard + this.#h2;
    this.#h2 = pass.b2 * bright - pass.a2 * heard;
    return heard;
  }
}

function shelfFor(sampleRate: number): Biquad {
  const k = Math.tan((Math.PI * SHELF.hz) / sampleRate);
  const high = 10 ** (SHELF.gainDb / 20);
  const band = high ** SHELF_BAND_EXPONENT;
  const a0 = 1 + k / SHELF.q + k * k;
  return {
    b0: (high + (band * k) / SHELF.q + k * k) / a0,
    b1: (2 * (k * k - high)) / a0,
    b2: (high - (band * k) / SHELF.q + k * k) / a0,
    a1: (2 * (k * k - 1)) / a0,
    a2: (1 - k / SHELF.q + k * k) / a0,
  };
}

function highPassFor(sampleRate: number): Biquad {
  const k = Math.tan((Math.PI * HIGH_PASS.hz) / sampleRate);
  const a0 = 1 + k / HIGH_PASS.q + k * k;
  return {
    b0: 1,
    b1: -2,
    b2: 1,
    a1: (2 * (k * k - 1)) / a0,
    a2: (1 - k / HIGH_PASS.q + k * k) / a0,
  };
}
