/** Blows, steps and breaks. */

import {
  Filter,
  glide,
  pinkNoise,
  ringing,
  SAMPLE_RATE,
  type Source,
  samplesIn,
  saturate,
  swell,
} from "../dsp.ts";
import { type Hit, type HitFamily, hit, type Surface, scattered, type TextureFamily } from "../family.ts";
import type { Random } from "../random.ts";
import { burst, later, modesOf, sumOf, thump } from "./blows.ts";

export const explosion: HitFamily = {
  kind: "hits",
  seconds: 2.4,
  everySeconds: 2.2,
  usualCount: 1,
  unevenness: 0.3,
  create({ pitch, size, random }) {
    const noise = random.fork("blast");
    const falling = glide(5200 * pitch, 90 * pitch, 1.1 * size);
    const blast = Filter.lowPass(5000);
    const level = swell(0.004, 2.6 * size);
    const sub = thump(95 * pitch, 32 * pitch, 1.8 * size, 1.1);
    let until = 0;
    return hit(2.4 * size, () => {
      const hz = falling();
      if (until === 0) {
        blast.tuneLowPass(hz);
        until = 16;
      }
      until -= 1;
      return saturate((blast.run(noise.signed()) * level() * 1.9 + sub()) * 1.5);
    });
  },
};

export const gunshot: HitFamily = {
  kind: "hits",
  seconds: 0.7,
  everySeconds: 0.7,
  usualCount: 1,
  unevenness: 0.25,
  create({ pitch, size, random }) {
    const crack = burst(random.fork("crack"), {
      band: Filter.highPass(900 * pitch),
      seconds: 0.05,
      gain: 1.6,
    });
    const body = burst(random.fork("body"), {
      band: Filter.bandPass(420 * pitch, 0.7),
      seconds: 0.22 * size,
      gain: 2.2,
    });
    const echo = burst(random.fork("echo"), {
      band: Filter.lowPass(600 * pitch),
      seconds: 0.85 * size,
      gain: 0.5,
    });
    return hit(0.7 * size, () => saturate(crack() + body() + echo()));
  },
};

/** Heel, then sole; what is walked on makes the difference. */
export const footsteps: HitFamily = {
  kind: "hits",
  seconds: 0.3,
  everySeconds: 0.56,
  usualCount: 6,
  unevenness: 0.03,
  create({ pitch, size, surface, random }, index) {
    // Left and right are not alike.
    const foot = pitch * (index % 2 === 0 ? 1 : 0.92);
    return hit(surface === "metal" ? 0.5 : 0.28, stepOn(surface, foot, size, random));
  },
};

/** One stride is three hooves in quick order, then a pause in the air. */
export const gallop: HitFamily = {
  kind: "hits",
  seconds: 0.5,
  everySeconds: 0.48,
  usualCount: 6,
  unevenness: 0.02,
  create({ pitch, rate, size, surface, random }) {
    const hooves = [0, 0.12, 0.24].map((at, index) => {
      const shell = 1 + 0.12 * index;
      const clop = ringing([
        { hz: 620 * pitch * shell, gain: 0.5, seconds: 0.05 * size },
        { hz: 1180 * pitch * shell, gain: 0.3, seconds: 0.03 * size },
      ]);
      const ground = stepOn(surface ?? "grass", 1.2 * pitch, size, random.fork(`hoof ${index}`));
      return later(at / rate, sumOf([clop, ground]));
    });
    return hit(0.24 / rate + 0.25, sumOf(hooves));
  },
};

function stepOn(surface: Surface | null, pitch: number, size: number, random: Random): Source {
  const heel = thump(125 * pitch, 70 * pitch, 0.1 * size, 0.32);
  const sole = random.fork("sole");
  switch (surface) {
    case "gravel":
      return sumOf([heel, grains(random, { hz: 2600 * pitch, seconds: 0.2, perSecond: 190 })]);
    case "snow":
      return sumOf([heel, grains(random, { hz: 1300 * pitch, seconds: 0.24, perSecond: 420 })]);
    case "grass":
      return sumOf([heel, burst(sole, { band: Filter.highPass(2500 * pitch), seconds: 0.2, gain: 0.25 })]);
    case "water":
      return sumOf([
        heel,
        burst(sole, { band: Filter.bandPass(1500 * pitch, 0.6), seconds: 0.26, gain: 0.7 }),
      ]);
    case "wood":
    case "metal":
      return sumOf([heel, ringing(modesOf((surface === "wood" ? 170 : 260) * pitch, surface, 0.35))]);
    default:
      return sumOf([
        heel,
        burst(sole, { band: Filter.bandPass(1900 * pitch, 0.8), seconds: 0.045, gain: 2 }),
        later(
          0.07,
          burst(sole.fork("toe"), { band: Filter.bandPass(2600 * pitch, 0.8), seconds: 0.04, gain: 0.9 }),
        ),
      ]);
  }
}

/** A crunch: many small breaks in a short time. */
function grains(
  random: Random,
  options: { readonly hz: number; readonly seconds: number; readonly perSecond: number },
): Source {
  const level = swell(0.02, options.seconds);
  const parts = scattered(random.fork("grains"), options.perSecond, (each) => {
    const band = Filter.bandPass(options.hz * each.between(0.6, 1.6), 1.2);
    return hit(0.012, burst(each.fork(each.unit()), { band, seconds: 0.012, gain: each.between(1.5, 5) }));
  });
  return () => parts() * level();
}

export const knock: HitFamily = {
  kind: "hits",
  seconds: 0.25,
  everySeconds: 0.29,
  usualCount: 3,
  unevenness: 0.05,
  create({ pitch, size, surface, random }) {
    const tap = burst(random.fork("tap"), {
      band: Filter.bandPass(1400 * pitch, 0.7),
      seconds: 0.012,
      gain: 1,
    });
    return hit(
      surface === "metal" ? 0.6 : 0.22,
      sumOf([tap, ringing(modesOf(((surface === "metal" ? 540 : 165) * pitch) / size, surface, 0.5))]),
    );
  },
};

export const slam: HitFamily = {
  kind: "hits",
  seconds: 0.6,
  everySeconds: 1.3,
  usualCount: 1,
  unevenness: 0.2,
  create({ pitch, size, surface, random }) {
    const bang = burst(random.fork("bang"), {
      band: Filter.lowPass(1300 * pitch),
      seconds: 0.3 * size,
      gain: 1.7,
    });
    const rattle = burst(random.fork("rattle"), {
      band: Filter.bandPass(2600 * pitch, 1),
      seconds: 0.12,
      gain: 0.5,
    });
    const frame = ringing(modesOf(92 * pitch, surface, 0.6));
    return hit(0.6 * size, () => saturate(bang() + rattle() + frame()));
  },
};

/** Hinges that stick and slip: pulses of a wandering rate in a wooden body. */
export const creak: HitFamily = {
  kind: "hits",
  seconds: 1.7,
  everySeconds: 2.1,
  usualCount: 1,
  unevenness: 0.3,
  create({ pitch, rate, size, random }) {
    const seconds = (1.6 * size) / Math.sqrt(rate);
    const samples = samplesIn(seconds);
    const body = [480, 1150, 2100].map((hz) => Filter.bandPass(hz * pitch * random.between(0.9, 1.1), 9));
    const bend = random.between(0.3, 0.7);
    let phase = 0;
    let at = 0;
    return hit(seconds, () => {
      at += 1;
      const part = at / samples;
      const tension = 1 - Math.abs(part - bend) * 1.3;
      phase += ((38 + 130 * tension * tension) * pitch) / SAMPLE_RATE;
      let pulse = 0;
      if (phase >= 1) {
        phase -= 1 + 0.25 * random.signed();
        pulse = 6;
      }
      const level = Math.sin(Math.PI * Math.min(1, part)) ** 0.6;
      let sum = 0;
      for (const filter of body) sum += filter.run(pulse * level);
      return sum;
    });
  },
};

/** A crack, then shards that fall and ring high. */
export const glass: HitFamily = {
  kind: "hits",
  seconds: 1.25,
  everySeconds: 1.8,
  usualCount: 1,
  unevenness: 0.3,
  create({ pitch, size, density, random }) {
    const crack = burst(random.fork("crack"), {
      band: Filter.highPass(2600 * pitch),
      seconds: 0.14,
      gain: 0.8,
    });
    const shards = Array.from({ length: Math.round(26 * Math.min(2, density)) }, () => {
      const hz = random.between(2400, 8800) * pitch;
      const seconds = random.between(0.12, 0.5) * size;
      const gain = random.between(0.08, 0.34);
      const ring = ringing([
        { hz, gain, seconds },
        { hz: hz * 1.51, gain: gain / 2, seconds: seconds / 2 },
      ]);
      return later(random.unit() ** 1.6 * 0.8 * size, ring);
    });
    return hit(1.25 * size, sumOf([crack, ...shards]));
  },
};

/** A hall of hands. */
export const applause: TextureFamily = {
  kind: "texture",
  seconds: 5,
  create({ pitch, rate, density, random }) {
    const far = pinkNoise(random.fork("far"));
    const band = Filter.bandPass(1300 * pitch, 0.7);
    const claps = scattered(random.fork("claps"), 110 * density * rate, (each): Hit => {
      const hands = Filter.bandPass(each.between(750, 2300) * pitch, 1.6);
      const seconds = each.between(0.012, 0.03);
      return hit(
        seconds,
        burst(each.fork(each.unit()), { band: hands, seconds, gain: each.between(0.2, 1) }),
      );
    });
    return () => claps() + band.run(far()) * 0.25 * Math.min(1.5, density);
  },
};

/** The two beats of a heart, 72 times a minute. */
export const heartbeat: HitFamily = {
  kind: "hits",
  seconds: 0.6,
  everySeconds: 60 / 72,
  usualCount: 5,
  unevenness: 0.015,
  create({ pitch, rate }) {
    const first = thump(72 * pitch, 42 * pitch, 0.2, 1);
    const second = later(0.26 / Math.max(1, rate), thump(86 * pitch, 52 * pitch, 0.16, 0.62));
    return hit(0.55, sumOf([first, second]));
  },
};

export const typing: HitFamily = {
  kind: "hits",
  seconds: 0.1,
  everySeconds: 0.14,
  usualCount: 18,
  unevenness: 0.55,
  create({ pitch, surface, random }) {
    const tick = burst(random.fork("tick"), {
      band: Filter.bandPass(random.between(2300, 3900) * pitch, 1.3),
      seconds: 0.014,
      gain: 1.2,
    });
    const base = ringing(
      modesOf(random.between(240, 330) * pitch, surface === "metal" ? "metal" : "wood", 0.16),
    );
    const release = later(
      0.055,
      burst(random.fork("up"), { band: Filter.bandPass(4200 * pitch, 1.3), seconds: 0.008, gain: 0.4 }),
    );
    return hit(0.1, sumOf([tick, base, release]));
  },
};
