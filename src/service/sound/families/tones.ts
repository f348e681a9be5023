/** Signals, and what only machines of the mind make. */
import {
  decay,
  dust,
  Filter,
  glide,
  pinkNoise,
  ringing,
  SAMPLE_RATE,
  saturate,
  saw,
  sine,
  square,
  swell,
  wander,
} from "../dsp.ts";
import { type HitFamily, hit, shapedHit, type TextureFamily } from "../family.ts";
import type { Random } from "../random.ts";

/** A wail that goes up and down every four seconds. */
export const siren: TextureFamily = {
  kind: "texture",
  seconds: 6,
  create({ pitch, rate }) {
    const tone = saw();
    const horn = Filter.bandPass(1100 * pitch, 0.8);
    let at = 0;
    return () => {
      at += rate / (4 * SAMPLE_RATE);
      at -= Math.floor(at);
      const bend = 0.5 - 0.5 * Math.cos(2 * Math.PI * at);
      return horn.run(tone((480 + 820 * bend) * pitch)) * 0.8;
    };
  },
};

/** Two tones by turns, with short gaps. */
export const alarm: TextureFamily = {
  kind: "texture",
  seconds: 4,
  create({ pitch, rate }) {
    const tone = square();
    const soften = Filter.lowPass(4500 * pitch);
    const edge = Filter.lowPass(60);
    let at = 0;
    return () => {
      at += rate / SAMPLE_RATE;
      const part = (at * 2.5) % 1;
      const isSecond = Math.floor(at * 2.5) % 2 === 1;
      const gate = edge.run(part < 0.8 ? 1 : 0);
      return soften.run(tone((isSecond ? 960 : 760) * pitch)) * gate * 0.5;
    };
  },
};

export const beep: HitFamily = {
  kind: "hits",
  seconds: 0.2,
  everySeconds: 0.4,
  usualCount: 1,
  unevenness: 0,
  create({ pitch, size }) {
    const seconds = 0.16 * size;
    const tone = sine();
    return shapedHit(seconds, (part) => {
      const level = Math.min(1, (part * seconds) / 0.005, ((1 - part) * seconds) / 0.005);
      return tone(1000 * pitch) * level * 0.8;
    });
  },
};

/** What a button says. */
export const click: HitFamily = {
  kind: "hits",
  seconds: 0.08,
  everySeconds: 0.35,
  usualCount: 1,
  unevenness: 0.1,
  create({ pitch, random }) {
    const noise = random.fork("tick");
    const band = Filter.bandPass(3200 * pitch, 1);
    const level = decay(0.012);
    const ring = ringing([{ hz: 1750 * pitch, gain: 0.35, seconds: 0.035 }]);
    return hit(0.06, () => band.run(noise.signed()) * level() * 1.4 + ring());
  },
};

/** Something passes by: a band of noise that opens and closes. */
export const whoosh: HitFamily = {
  kind: "hits",
  seconds: 0.9,
  everySeconds: 0.95,
  usualCount: 1,
  unevenness: 0.2,
  create({ pitch, rate, size, random }) {
    const noise = random.fork("air");
    const band = Filter.bandPass(400, 1.1);
    const peak = random.between(0.42, 0.6);
    let until = 0;
    return shapedHit((0.85 * size) / rate, (part) => {
      const near = Math.exp(-(((part - peak) / 0.19) ** 2));
      if (until === 0) {
        band.tuneBandPass((260 + 2300 * near) * pitch, 1.1);
        until = 16;
      }
      until -= 1;
      return band.run(noise.signed()) * near * 1.5;
    });
  },
};

/** A tone that falls three octaves. */
export const laser: HitFamily = {
  kind: "hits",
  seconds: 0.4,
  everySeconds: 0.42,
  usualCount: 1,
  unevenness: 0.2,
  create({ pitch, size, random }) {
    const seconds = 0.36 * size;
    const from = random.between(2200, 3000) * pitch;
    const falling = glide(from, from / 11, seconds);
    const tone = saw();
    const shadow = sine();
    const level = swell(0.004, seconds * 1.6);
    return hit(seconds, () => {
      const hz = falling();
      return (tone(hz) * 0.45 + shadow(hz * 0.5) * 0.45) * level();
    });
  },
};

/** A chord of detuned low tones behind a filter that breathes. */
export const drone: TextureFamily = {
  kind: "texture",
  seconds: 8,
  create({ pitch, rate, random }) {
    const voices = [1, 1.5, 2, 2.997].flatMap((ratio) =>
      [0.997, 1.003].map((detune) => ({
        tone: saw(random.unit()),
        hz: 55 * pitch * ratio * detune,
        gain: 0.2 / ratio,
      })),
    );
    const breath = wander(random.fork("breath"), 0.35 * rate);
    const filter = Filter.lowPass(500, 0.9);
    const air = pinkNoise(random.fork("air"));
    let until = 0;
    return () => {
      const open = breath();
      if (until === 0) {
        filter.tuneLowPass((180 + 900 * open) * pitch, 0.9);
        until = 32;
      }
      until -= 1;
      let sum = air() * 0.12;
      for (const { tone, hz, gain } of voices) sum += tone(hz) * gain;
      return filter.run(sum);
    };
  },
};

/** A receiver between stations. */
export const radioNoise: TextureFamily = {
  kind: "texture",
  seconds: 4,
  create({ pitch, rate, density, random }) {
    const noise = random.fork("noise");
    const low = Filter.highPass(420 * pitch);
    const high = Filter.lowPass(5200 * pitch);
    const fading = wander(random.fork("fading"), 2.5 * rate);
    const tuning = wander(random.fork("tuning"), 0.8 * rate);
    const crackling = dust(random.fork("crackle"), 22 * density);
    const whistle = sine();
    return () => {
      const hiss = high.run(low.run(noise.signed())) * (0.28 + 0.22 * fading());
      return saturate(hiss + crackling() * 0.8 + whistle((500 + 1900 * tuning()) * pitch) * 0.05);
    };
  },
};

/** What a low prompt_influence adds: a chord and a band of noise, whose pitches, brightness and pulse are drawn by chance. */
export const colour: TextureFamily = {
  kind: "texture",
  seconds: 4,
  create({ pitch, rate, random }) {
    // By equal ratios, as pitches are heard.
    const base = 60 * 14 ** random.unit() * pitch;
    const tones = Array.from({ length: 3 }, () => hashedTone(base, random));
    const noise = pinkNoise(random.fork("air"));
    const band = Filter.bandPass(180 * 40 ** random.unit() * pitch, random.between(1, 8));
    const airiness = random.between(0.3, 1.6);
    const pulse = wander(random.fork("pulse"), random.between(0.4, 5) * rate);
    return () => {
      let sum = band.run(noise()) * airiness;
      for (const tone of tones) sum += tone();
      return sum * (0.35 + 0.65 * pulse());
    };
  },
};

function hashedTone(base: number, random: Random): () => number {
  const hz = base * random.between(1, 4);
  const drift = wander(random.fork(`drift ${hz}`), random.between(0.2, 1.2));
  const tone = random.unit() < 0.5 ? sine() : saw();
  const gain = random.between(0.05, 0.28);
  return () => tone(hz * (0.985 + 0.03 * drift())) * gain;
}
