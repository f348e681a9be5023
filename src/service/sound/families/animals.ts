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
  throat,
  wander,
} from "../dsp.ts";
import { type HitFamily, hit, shapedHit, type TextureFamily } from "../family.ts";

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

export const dog: HitFamily = {
  kind: "hits",
  seconds: 0.35,
  everySeconds: 0.48,
  usualCount: 2,
  unevenness: 0.2,
  create({ pitch, size, random }) {
    const noise = pinkNoise(random.fork("breath"));
    const cords = saw();
    const mouth = throat([
      [620 * pitch, 3, 2.2],
      [1250 * pitch, 4, 1.6],
      [2500 * pitch, 4, 0.8],
    ]);
    return shapedHit(0.2 * size, (part) => {
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
    const cords = saw();
    const mouth = throat([
      [480 * pitch, 4, 1.8],
      [1400 * pitch, 5, 0.9],
    ]);
    return shapedHit(seconds, (part) => {
      const rattle = 0.5 + 0.5 * Math.sin(2 * Math.PI * 38 * part * seconds);
      return mouth(cords((95 + 60 * part) * pitch)) * rattle * Math.sin(Math.PI * Math.min(1, part)) * 1.3;
    });
  },
};

/** A long low tone through a nose, then through an open mouth. */
export const cow: HitFamily = {
  kind: "hits",
  seconds: 1.7,
  everySeconds: 2.2,
  usualCount: 1,
  unevenness: 0.2,
  create({ pitch, size }) {
    const cords = saw();
    const nose = throat([[240 * pitch, 2, 1.6]]);
    const mouth = throat([
      [520 * pitch, 3, 1.5],
      [1000 * pitch, 4, 0.7],
    ]);
    return shapedHit(1.6 * size, (part) => {
      const open = Math.min(1, part / 0.4);
      const tone = cords((120 + 40 * Math.sin(Math.PI * part)) * pitch);
      return (nose(tone) * (1 - 0.6 * open) + mouth(tone) * open) * Math.min(1, part / 0.1, (1 - part) / 0.2);
    });
  },
};

/** A bleat: a nasal tone that trembles nine times a second. */
export const sheep: HitFamily = {
  kind: "hits",
  seconds: 0.8,
  everySeconds: 1.4,
  usualCount: 1,
  unevenness: 0.3,
  create({ pitch, size }) {
    const seconds = 0.75 * size;
    const cords = saw();
    const mouth = throat([
      [700 * pitch, 4, 1.6],
      [1700 * pitch, 4, 1.3],
    ]);
    return shapedHit(seconds, (part) => {
      const tremble = Math.sin(2 * Math.PI * 9 * part * seconds);
      const level = (0.65 + 0.35 * tremble) * Math.min(1, part / 0.08, (1 - part) / 0.15);
      return mouth(cords((300 + 18 * tremble) * pitch)) * level;
    });
  },
};

/** A neigh: high, then down an octave and a half, trembling. */
export const horse: HitFamily = {
  kind: "hits",
  seconds: 1.4,
  everySeconds: 2,
  usualCount: 1,
  unevenness: 0.2,
  create({ pitch, size, random }) {
    const seconds = 1.35 * size;
    const cords = saw();
    const noise = pinkNoise(random.fork("breath"));
    const mouth = throat([
      [900 * pitch, 2, 1.4],
      [2200 * pitch, 3, 1],
    ]);
    return shapedHit(seconds, (part) => {
      const tremble = Math.sin(2 * Math.PI * 13 * part * seconds);
      const hz = 950 * 2.8 ** -part * (1 + 0.06 * tremble) * pitch;
      const level = (0.6 + 0.4 * tremble * part) * Math.min(1, part / 0.05, (1 - part) / 0.2);
      return mouth(cords(hz) + noise() * 0.4) * level;
    });
  },
};
