/** What is struck and rings on: bells, chimes, gongs, and the telephone that has bells. */
import { ringing, samplesIn, swell } from "../dsp.ts";
import { type HitFamily, hit, type TextureFamily } from "../family.ts";

/** A church bell's partials over its strike note: [ratio, gain, part of the ringing time]. */
const BELL_PARTIALS = [
  [0.5, 0.45, 1],
  [1, 0.6, 0.8],
  [1.19, 0.4, 0.6],
  [1.5, 0.25, 0.45],
  [2, 0.5, 0.4],
  [2.51, 0.2, 0.25],
  [3.01, 0.22, 0.2],
  [4.1, 0.15, 0.12],
] as const;

function bellModes(hz: number, seconds: number, gain: number) {
  return BELL_PARTIALS.map(([ratio, level, part]) => ({
    hz: hz * ratio,
    gain: level * gain,
    seconds: seconds * part,
  }));
}

export const bell: HitFamily = {
  kind: "hits",
  seconds: 4,
  everySeconds: 1.6,
  usualCount: 1,
  unevenness: 0.03,
  create({ pitch, size }) {
    return hit(4 * size, ringing(bellModes(520 * pitch, 6.5 * size, 0.5)));
  },
};

/** Notes of a pentatonic scale, as wind chimes and door chimes have. */
const SCALE = [1, 1.125, 1.25, 1.5, 1.667, 2] as const;

export const chime: HitFamily = {
  kind: "hits",
  seconds: 2,
  everySeconds: 0.42,
  usualCount: 6,
  unevenness: 0.5,
  create({ pitch, size, random }) {
    const note = SCALE[Math.floor(random.unit() * SCALE.length)] ?? 1;
    const hz = 1180 * pitch * note;
    return hit(
      2 * size,
      ringing([
        { hz, gain: 0.45, seconds: 2 * size },
        { hz: hz * 2.76, gain: 0.2, seconds: 0.8 * size },
        { hz: hz * 5.4, gain: 0.1, seconds: 0.3 * size },
      ]),
    );
  },
};

/** Deep partials at once, the high ones after a moment, as in a large sheet of metal. */
export const gong: HitFamily = {
  kind: "hits",
  seconds: 6,
  everySeconds: 4,
  usualCount: 1,
  unevenness: 0.05,
  create({ pitch, size, random }) {
    const low = ringing(
      [1, 1.48, 2.05, 2.63, 3.3].map((ratio) => ({
        hz: 92 * pitch * ratio * random.between(0.98, 1.02),
        gain: 0.34 / ratio ** 0.5,
        seconds: (7 * size) / ratio ** 0.5,
      })),
    );
    const high = ringing(
      Array.from({ length: 12 }, () => ({
        hz: random.between(420, 2600) * pitch,
        gain: random.between(0.02, 0.08),
        seconds: random.between(1.5, 3.5) * size,
      })),
    );
    const opening = swell(0.35, 40);
    return hit(6 * size, () => low() + high() * opening());
  },
};

/** A bell telephone: two gongs by turns 20 times a second, one second in three. */
export const phone: TextureFamily = {
  kind: "texture",
  seconds: 4,
  create({ pitch, rate }) {
    const cycle = samplesIn(2.4 / rate);
    const strike = samplesIn(0.05);
    let at = 0;
    let gongs: { high: () => number; low: () => number } = { high: () => 0, low: () => 0 };
    return () => {
      const inCycle = at % cycle;
      if (inCycle < cycle / 2 && inCycle % strike === 0) {
        const modes = bellModes((inCycle / strike) % 2 === 0 ? 1480 * pitch : 1230 * pitch, 0.9, 0.3);
        const rung = ringing(modes);
        gongs = (inCycle / strike) % 2 === 0 ? { ...gongs, high: rung } : { ...gongs, low: rung };
      }
      at += 1;
      return gongs.high() + gongs.low();
    };
  },
};
