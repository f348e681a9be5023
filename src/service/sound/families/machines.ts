/** Engines, clocks and horns. */
import { decay, Filter, pinkNoise, ringing, SAMPLE_RATE, saturate, saw, sine, wander } from "../dsp.ts";
import { type HitFamily, hit, shapedHit, type TextureFamily } from "../family.ts";

/** Firing cylinders: a pulse train with its half-order, in a box that rumbles. */
export const engine: TextureFamily = {
  kind: "texture",
  seconds: 5,
  create({ pitch, rate, random }) {
    const speed = wander(random.fork("speed"), 0.5);
    const noise = pinkNoise(random.fork("exhaust"));
    const firing = saw();
    const order = saw(0.3);
    const body = Filter.lowPass(620 * pitch, 1.2);
    const exhaust = Filter.bandPass(900 * pitch, 0.7);
    return () => {
      const hz = 46 * pitch * rate * (0.9 + 0.25 * speed());
      const pulse = firing(hz);
      const slow = order(hz / 2);
      const puff = Math.max(0, pulse) ** 2;
      return saturate((body.run(pulse * 0.6 + slow * 0.45) + exhaust.run(noise()) * puff * 1.4) * 1.2);
    };
  },
};

/** Blades: a low beat of air over a turbine's whine. */
export const helicopter: TextureFamily = {
  kind: "texture",
  seconds: 5,
  create({ pitch, rate, random }) {
    const noise = pinkNoise(random.fork("air"));
    const air = Filter.lowPass(520 * pitch);
    const whine = saw();
    const thin = Filter.bandPass(2400 * pitch, 3);
    const drift = wander(random.fork("drift"), 0.4);
    let at = 0;
    return () => {
      at += (11 * rate) / SAMPLE_RATE;
      at -= Math.floor(at);
      const beat = (1 - at) ** 3;
      return saturate(
        air.run(noise()) * (0.2 + 2.2 * beat) + thin.run(whine((600 + 20 * drift()) * pitch)) * 0.12,
      );
    };
  },
};

/** Tick and tock by turns, one each half second. */
export const clock: HitFamily = {
  kind: "hits",
  seconds: 0.12,
  everySeconds: 0.5,
  usualCount: 8,
  unevenness: 0,
  create({ pitch, random }, index) {
    const high = (index % 2 === 0 ? 2350 : 1900) * pitch;
    const ring = ringing([
      { hz: high, gain: 0.5, seconds: 0.04 },
      { hz: high * 1.83, gain: 0.3, seconds: 0.025 },
      { hz: 430 * pitch, gain: 0.25, seconds: 0.06 },
    ]);
    const tick = Filter.highPass(3500);
    const level = decay(0.006);
    const noise = random.fork("tick");
    return hit(0.1, () => ring() + tick.run(noise.signed()) * level() * 0.6);
  },
};

export const horn: HitFamily = {
  kind: "hits",
  seconds: 0.9,
  everySeconds: 1.1,
  usualCount: 1,
  unevenness: 0.1,
  create({ pitch, size }) {
    const seconds = 0.85 * size;
    const low = saw();
    const high = saw(0.4);
    const cup = Filter.lowPass(2600 * pitch, 1);
    return shapedHit(seconds, (part) => {
      const level = Math.min(1, (part * seconds) / 0.02, ((1 - part) * seconds) / 0.04);
      return cup.run(low(405 * pitch) + high(508 * pitch)) * 0.4 * level;
    });
  },
};

/** A mains hum with its harmonics. */
export const hum: TextureFamily = {
  kind: "texture",
  seconds: 5,
  create({ pitch, random }) {
    const parts = [1, 2, 3, 4, 6].map((order) => ({ tone: sine(random.unit()), order, gain: 0.5 / order }));
    const sway = wander(random.fork("sway"), 0.8);
    return () => {
      const level = 0.8 + 0.2 * sway();
      let sum = 0;
      for (const { tone, order, gain } of parts) sum += tone(60 * pitch * order) * gain;
      return sum * level * 0.8;
    };
  },
};
