/** Weather, water and fire. */
import {
  brownNoise,
  decay,
  dust,
  Filter,
  glide,
  pinkNoise,
  ringing,
  SAMPLE_RATE,
  type Source,
  saturate,
  sine,
  swell,
  wander,
} from "../dsp.ts";
import { type Hit, type HitFamily, hit, type Shape, scattered, type TextureFamily } from "../family.ts";
import type { Random } from "../random.ts";

/** A hiss of far drops and the near ones one by one; on metal they ring. */
export const rain: TextureFamily = {
  kind: "texture",
  seconds: 6,
  create({ pitch, density, surface, random }) {
    const noise = random.fork("hiss");
    const hiss = Filter.highPass(1800 * pitch);
    const top = Filter.lowPass(11_000 * pitch);
    const swaying = wander(random.fork("sway"), 0.7);
    const drops = dust(random.fork("drops"), 260 * density);
    const near = [2300, 3900, 6100].map((hz) => Filter.bandPass(hz * pitch, 6));
    const roof =
      surface === "metal" || surface === "wood" ? roofDrops(random, { pitch, surface, density }) : null;
    return () => {
      const level = 0.16 + 0.06 * swaying();
      const drop = drops() * 3;
      let sum = top.run(hiss.run(noise.signed())) * level;
      for (const filter of near) sum += filter.run(drop);
      return sum + (roof === null ? 0 : roof() * 0.5);
    };
  },
};

function roofDrops(random: Random, shape: Pick<Shape, "pitch" | "surface" | "density">): Source {
  const seconds = shape.surface === "metal" ? 0.16 : 0.04;
  const base = (shape.surface === "metal" ? 900 : 320) * shape.pitch;
  return scattered(random.fork("roof"), 30 * shape.density, (each) => {
    const hz = base * each.between(0.8, 2.4);
    const gain = each.between(0.05, 0.5);
    return hit(
      seconds,
      ringing([
        { hz, gain, seconds },
        { hz: hz * 2.7, gain: gain / 2, seconds: seconds / 2 },
      ]),
    );
  });
}

/** A crack, then a rumble that comes back in a few rolls. */
export const thunder: HitFamily = {
  kind: "hits",
  seconds: 5,
  everySeconds: 5.5,
  usualCount: 1,
  unevenness: 0.3,
  create({ pitch, size, random }) {
    const rumbling = brownNoise(random.fork("rumble"));
    const deep = Filter.lowPass(150 * pitch);
    const deeper = Filter.lowPass(260 * pitch);
    const noise = random.fork("crack");
    const crackle = Filter.lowPass(2200 * pitch);
    const crack = decay(0.35 * size);
    const rolls = [0.05, 0.6, 1.2, 2].map((at) => {
      const shift = random.between(0.8, 1.25);
      return {
        at: at * shift * size * SAMPLE_RATE,
        envelope: swell(0.09, 3.4 * size),
        gain: random.between(0.5, 1),
      };
    });
    let at = 0;
    return hit(5 * size, () => {
      at += 1;
      let level = 0;
      for (const roll of rolls) if (at > roll.at) level += roll.envelope() * roll.gain;
      const rumble = deeper.run(deep.run(rumbling())) * level * 1.6;
      return saturate(rumble + crackle.run(noise.signed()) * crack() * 0.8);
    });
  },
};

/** Gusts: a moving band of noise, and a whistle that follows it. */
export const wind: TextureFamily = {
  kind: "texture",
  seconds: 7,
  create({ pitch, rate, density, random }) {
    const noise = pinkNoise(random.fork("noise"));
    const gusts = wander(random.fork("gusts"), 0.45 * rate);
    const flutter = wander(random.fork("flutter"), 3 * rate);
    const body = Filter.bandPass(400, 0.9);
    const whistle = Filter.bandPass(800, 22);
    let until = 0;
    let gust = 0;
    return () => {
      const strength = gusts() * 0.85 + flutter() * 0.15;
      if (until === 0) {
        gust = strength;
        body.tuneBandPass((170 + 620 * gust * gust) * pitch, 0.9);
        whistle.tuneBandPass((420 + 900 * gust) * pitch, 22);
        until = 32;
      }
      until -= 1;
      const air = noise();
      return (body.run(air) * 1.3 + whistle.run(air) * 0.9 * density) * (0.15 + strength * strength);
    };
  },
};

/** Waves that rise, break and run out, one about every six seconds. */
export const sea: TextureFamily = {
  kind: "texture",
  seconds: 10,
  create({ pitch, rate, random }) {
    const noise = random.fork("surf");
    const far = pinkNoise(random.fork("far"));
    const farBand = Filter.lowPass(420 * pitch);
    const surf = Filter.lowPass(900);
    const lengths = random.fork("lengths");
    let step = (rate / (6 * SAMPLE_RATE)) * lengths.between(0.8, 1.2);
    let at = lengths.between(0.05, 0.3);
    let until = 0;
    return () => {
      at += step;
      if (at >= 1) {
        at -= 1;
        step = (rate / (6 * SAMPLE_RATE)) * lengths.between(0.8, 1.2);
      }
      const wave = at < 0.4 ? (at / 0.4) ** 2 : ((1 - at) / 0.6) ** 1.6;
      if (until === 0) {
        surf.tuneLowPass((350 + 5200 * wave) * pitch);
        until = 32;
      }
      until -= 1;
      return surf.run(noise.signed()) * (0.03 + 0.4 * wave) + farBand.run(far()) * 0.16;
    };
  },
};

function bubbleOf(
  random: Random,
  pitch: number,
  range: { readonly low: number; readonly high: number },
): Hit {
  const hz = random.between(range.low, range.high) * pitch;
  const seconds = Math.min(0.2, 55 / hz);
  const rising = glide(hz, hz * random.between(1.15, 1.7), seconds);
  const level = swell(0.003, seconds);
  const tone = sine();
  const gain = random.between(0.15, 0.6);
  return hit(seconds, () => tone(rising()) * level() * gain);
}

/** Running water: a soft rush and many small bubbles. */
export const stream: TextureFamily = {
  kind: "texture",
  seconds: 7,
  create({ pitch, rate, density, random }) {
    const noise = pinkNoise(random.fork("rush"));
    const rush = Filter.bandPass(750 * pitch, 0.6);
    const sway = wander(random.fork("sway"), 2.2 * rate);
    const bubbles = scattered(random.fork("bubbles"), 70 * density * rate, (each) =>
      bubbleOf(each, pitch, { low: 450, high: 2200 }),
    );
    return () => rush.run(noise()) * (0.35 + 0.35 * sway()) + bubbles() * 0.45;
  },
};

/** A low roar under crackles and now and then a pop. */
export const fire: TextureFamily = {
  kind: "texture",
  seconds: 6,
  create({ pitch, rate, density, random }) {
    const roaring = brownNoise(random.fork("roar"));
    const roar = Filter.bandPass(140 * pitch, 0.6);
    const breath = wander(random.fork("breath"), 3 * rate);
    const sputter = wander(random.fork("sputter"), 1.5 * rate);
    const crackles = scattered(random.fork("crackles"), 24 * density * rate, (each) => crackle(each, pitch));
    const sparks = dust(random.fork("sparks"), 60 * density);
    const spark = Filter.highPass(3000 * pitch);
    return () =>
      roar.run(roaring()) * (0.16 + 0.2 * breath()) +
      crackles() * 0.75 +
      spark.run(sparks()) * 0.3 * sputter();
  },
};

function crackle(random: Random, pitch: number): Hit {
  const isPop = random.unit() < 0.12;
  const seconds = isPop ? 0.05 : random.between(0.005, 0.018);
  const band = Filter.bandPass((isPop ? random.between(500, 900) : random.between(1500, 5500)) * pitch, 1.5);
  const level = decay(seconds);
  const gain = isPop ? 1.1 : random.between(0.15, 0.8);
  const noise = random.fork(random.unit());
  return hit(seconds, () => band.run(noise.signed()) * level() * gain);
}

/** A drop into water: a short tick, then a tone that rises. */
export const drop: HitFamily = {
  kind: "hits",
  seconds: 0.35,
  everySeconds: 0.85,
  usualCount: 1,
  unevenness: 0.35,
  create({ pitch, size, random }) {
    const hz = 760 * pitch * random.between(0.85, 1.25);
    const rising = glide(hz, hz * 1.9, 0.09 * size);
    const level = swell(0.002, 0.22 * size);
    const tone = sine();
    const tick = Filter.highPass(3000);
    const ticking = decay(0.006);
    const noise = random.fork("tick");
    return hit(0.3 * size, () => tone(rising()) * level() * 0.8 + tick.run(noise.signed()) * ticking() * 0.3);
  },
};

export const bubbles: HitFamily = {
  kind: "hits",
  seconds: 0.25,
  everySeconds: 0.13,
  usualCount: 18,
  unevenness: 0.8,
  create({ pitch, random }) {
    return bubbleOf(random, pitch, { low: 260, high: 850 });
  },
};
