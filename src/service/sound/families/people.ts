/** What people do without words. */
import { Filter, glide, pinkNoise, saw, sine, swell, throat } from "../dsp.ts";
import { type HitFamily, shapedHit } from "../family.ts";

/** Syllables of one bout, from its first to its last. */
const HA_COUNT = 7;

/** "Ha ha ha": a breath, then an open vowel, each a little lower than the one before. */
export const laugh: HitFamily = {
  kind: "hits",
  seconds: 0.2,
  everySeconds: 0.2,
  usualCount: 14,
  unevenness: 0.06,
  create({ pitch, size, random }, index) {
    const seconds = 0.17 * size;
    const cords = saw();
    const breath = pinkNoise(random.fork("breath"));
    const place = index % HA_COUNT;
    const hz = 270 * 0.95 ** place * pitch;
    const mouth = throat([
      [750 * pitch, 4, 1.8],
      [1250 * pitch, 5, 1.2],
      [2700 * pitch, 5, 0.6],
    ]);
    return shapedHit(seconds, (part) => {
      const voice = Math.min(1, Math.max(0, part - 0.2) / 0.12) * (1 - part) ** 0.6;
      const air = Math.sin(Math.PI * Math.min(1, part / 0.4)) * 0.5;
      return mouth(cords(hz * (1.06 - 0.12 * part)) * voice + breath() * air) * (1 - 0.08 * place);
    });
  },
};

/** A baby's wail: the pitch rises and falls within one breath, and breath is drawn after it. */
export const cry: HitFamily = {
  kind: "hits",
  seconds: 1.3,
  everySeconds: 1.35,
  usualCount: 3,
  unevenness: 0.08,
  create({ pitch, size, random }) {
    const cords = saw();
    const breath = pinkNoise(random.fork("breath"));
    const gasp = Filter.bandPass(1900 * pitch, 1.5);
    const mouth = throat([
      [1050 * pitch, 3, 1.6],
      [2900 * pitch, 4, 1],
    ]);
    return shapedHit(1.3 * size, (part) => {
      const wail = Math.min(1, part / 0.75);
      const level = Math.min(1, wail / 0.12, (1 - wail) / 0.2);
      const tone = cords((360 + 140 * Math.sin(Math.PI * wail ** 0.8)) * pitch);
      const drawn = part < 0.82 ? 0 : Math.sin((Math.PI * (part - 0.82)) / 0.18);
      return mouth(tone + breath() * 0.1) * level + gasp.run(breath()) * drawn * 0.35;
    });
  },
};

/** A breath drawn over a slack palate, which flaps; then a soft one out. */
export const snore: HitFamily = {
  kind: "hits",
  seconds: 3,
  everySeconds: 3.2,
  usualCount: 2,
  unevenness: 0.08,
  create({ pitch, size, random }) {
    const seconds = 3 * size;
    const flaps = saw();
    const breath = pinkNoise(random.fork("breath"));
    const nose = throat([
      [230 * pitch, 2, 1.6],
      [620 * pitch, 3, 0.8],
    ]);
    const out = Filter.bandPass(900 * pitch, 0.8);
    return shapedHit(seconds, (part) => {
      const drawn = part < 0.45 ? Math.sin((Math.PI * part) / 0.45) : 0;
      const blown = part > 0.55 ? Math.sin((Math.PI * (part - 0.55)) / 0.45) : 0;
      const flap = Math.max(0, flaps(27 * pitch)) ** 2;
      return nose(breath() * flap * 3) * drawn + out.run(breath()) * blown * 0.15;
    });
  },
};

/** Two notes of a whistle through the lips: up, then down. */
export const whistle: HitFamily = {
  kind: "hits",
  seconds: 0.9,
  everySeconds: 1.2,
  usualCount: 1,
  unevenness: 0.1,
  create({ pitch, size, random }) {
    const tone = sine();
    const air = Filter.bandPass(2200 * pitch, 2);
    const breath = pinkNoise(random.fork("breath"));
    const seconds = 0.85 * size;
    const up = glide(1300 * pitch, 2600 * pitch, seconds * 0.4);
    const down = glide(2300 * pitch, 1300 * pitch, seconds * 0.4);
    const rise = swell(0.02, 60);
    return shapedHit(seconds, (part) => {
      const level =
        part < 0.45 ? Math.min(1, (0.45 - part) / 0.05) : Math.min(1, (part - 0.5) / 0.05, (1 - part) / 0.1);
      const hz = part < 0.475 ? up() : down();
      return (tone(hz) * 0.7 + air.run(breath()) * 0.1) * Math.max(0, level) * rise();
    });
  },
};
