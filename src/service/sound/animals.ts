/** Voices of animals. */
import {
  Filter,
  glide,
  pinkNoise,
  SAMPLE_RATE,
  type Source,
  samplesIn,
  saturate,
  saw,
  sine,
  wander,
} from "./dsp.ts";
import { type HitFamily, hit, type TextureFamily } from "./family.ts";

/** A call of two to four quick sweeps. */
export const bird: HitFamily = {
  kind: "hits",
  seconds: 0.5,
  everySeconds: 0.6,
  usualCount: 6,
  unevenness: 0.6,
  create({ pitch, size, random }) {
    const base = random.between(2700, 4300) * pitch;
    const sweeps = Array.from({ length: 2 + Math.floor(random.unit() * 3) }, () => ({
      from: base * random.between(0.85, 1.35),
      to: base * random.between(0.75, 1.4),
    }));
    const each = samplesIn(0.105 * size);
    const tone = sine();
    let bend: Source = () => base;
    let at = 0;
    return hit((each * sweeps.length) / SAMPLE_RATE, () => {
      const sweep = sweeps[Math.floor(at / each)];
      const part = (at % each) / each;
      if (at % each === 0 && sweep !== undefined) bend = glide(sweep.from, sweep.to, 0.08 * size);
      at += 1;
      // A gap between sweeps, as a beak makes it.
      const level = part < 0.75 ? Math.sin((Math.PI * part) / 0.75) : 0;
      return tone(bend()) * level * 0.6;
    });
  },
};

/** A throat: a rough tone behind the resonances of a mouth. */
function throat(
  resonances: readonly (readonly [hz: number, q: number, gain: number])[],
): (input: number) => number {
  const filters = resonances.map(([hz, q, gain]) => ({ filter: Filter.bandPass(hz, q), gain }));
  return (input) => {
    let sum = 0;
    for (const { filter, gain } of filters) sum += filter.run(input) * gain;
    return sum;
  };
}

export const dog: HitFamily = {
  kind: "hits",
  seconds: 0.35,
  everySeconds: 0.48,
  usualCount: 2,
  unevenness: 0.2,
  create({ pitch, size, random }) {
    const seconds = 0.2 * size;
    const samples = samplesIn(seconds);
    const noise = pinkNoise(random.fork("breath"));
    const cords = saw();
    const mouth = throat([
      [620 * pitch, 3, 2.2],
      [1250 * pitch, 4, 1.6],
      [2500 * pitch, 4, 0.8],
    ]);
    let at = 0;
    return hit(seconds, () => {
      at += 1;
      const part = at / samples;
      const bend = Math.sin(Math.PI * Math.min(1, part * 1.15)) ** 0.8;
      const level = Math.min(1, part / 0.08) * (1 - part) ** 0.7;
      return saturate(mouth(cords((270 + 260 * bend) * pitch) + noise() * 0.9) * level * 1.6);
    });
  },
};

/** Mouth opens and closes over a tone that rises and falls. */
export const cat: HitFamily = {
  kind: "hits",
  seconds: 0.9,
  everySeconds: 1.3,
  usualCount: 1,
  unevenness: 0.3,
  create({ pitch, size, random }) {
    const seconds = 0.85 * size;
    const samples = samplesIn(seconds);
    const cords = saw();
    const noise = pinkNoise(random.fork("breath"));
    const first = Filter.bandPass(700, 4);
    const second = Filter.bandPass(1800, 5);
    const quiver = wander(random.fork("quiver"), 7);
    let at = 0;
    return hit(seconds, () => {
      at += 1;
      const part = at / samples;
      const open = Math.sin(Math.PI * Math.min(1, part)) ** 0.7;
      if (at % 32 === 1) {
        first.tuneBandPass((520 + 620 * open) * pitch, 4);
        second.tuneBandPass((1500 + 1100 * open) * pitch, 5);
      }
      const hz = (420 + 260 * Math.sin(Math.PI * part ** 0.7) + 20 * quiver()) * pitch;
      const voice = cords(hz) + noise() * 0.15;
      return (first.run(voice) * 1.3 + second.run(voice) * 0.8) * Math.min(1, part / 0.1) * open;
    });
  },
};

/** Three pulses of a high tone, twice a second, from two insects. */
export const cricket: TextureFamily = {
  kind: "texture",
  seconds: 5,
  create({ pitch, rate, density, random }) {
    const count = Math.max(1, Math.round(2 * density));
    const insects = Array.from({ length: count }, (_, index) => ({
      tone: sine(random.unit()),
      hz: 4300 * pitch * random.between(0.94, 1.08),
      at: index === 0 ? 0 : random.unit(),
      step: (2.1 * rate * random.between(0.94, 1.06)) / SAMPLE_RATE,
      gain: index === 0 ? 0.6 : 0.25,
    }));
    return () => {
      let sum = 0;
      for (const insect of insects) {
        insect.at += insect.step;
        insect.at -= Math.floor(insect.at);
        const pulse = insect.at * 14;
        const level = pulse < 3 ? Math.sin(Math.PI * (pulse % 1)) ** 2 : 0;
        sum += insect.tone(insect.hz) * level * insect.gain;
      }
      return sum;
    };
  },
};

/** Two croaks of a deep throat. */
export const frog: HitFamily = {
  kind: "hits",
  seconds: 0.4,
  everySeconds: 0.7,
  usualCount: 3,
  unevenness: 0.3,
  create({ pitch, size }) {
    const seconds = 0.34 * size;
    const samples = samplesIn(seconds);
    const cords = saw();
    const mouth = throat([
      [480 * pitch, 4, 1.8],
      [1400 * pitch, 5, 0.9],
    ]);
    let at = 0;
    return hit(seconds, () => {
      at += 1;
      const part = at / samples;
      const rattle = 0.5 + 0.5 * Math.sin((2 * Math.PI * 38 * at) / SAMPLE_RATE);
      return mouth(cords((95 + 60 * part) * pitch)) * rattle * Math.sin(Math.PI * Math.min(1, part)) * 1.3;
    });
  },
};
