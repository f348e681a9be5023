/** Drums and cymbals, one blow each. */

import { Filter, ringing, type Source } from "../dsp.ts";
import { type HitFamily, hit, type Shape } from "../family.ts";
import { burst, sumOf, thump } from "./blows.ts";

/** A drum of any kind. */
function drumFamily(seconds: number, create: (shape: Shape) => Source): HitFamily {
  return {
    kind: "hits",
    seconds,
    everySeconds: 0.5,
    usualCount: 1,
    unevenness: 0.01,
    create: (shape) => hit(seconds * shape.size, create(shape)),
  };
}

export const drum = drumFamily(0.6, ({ pitch, size, random }) =>
  sumOf([
    thump(190 * pitch, 92 * pitch, 0.5 * size, 0.9),
    burst(random.fork("skin"), { band: Filter.bandPass(1100 * pitch, 0.8), seconds: 0.04, gain: 0.6 }),
  ]),
);

export const kickHit = ({ pitch, size, random }: Shape): Source =>
  sumOf([
    thump(150 * pitch, 46 * pitch, 0.36 * size, 1),
    burst(random.fork("beater"), { band: Filter.bandPass(2400 * pitch, 0.8), seconds: 0.008, gain: 0.5 }),
  ]);
export const kick = drumFamily(0.4, kickHit);

export const snareHit = ({ pitch, size, random }: Shape): Source =>
  sumOf([
    thump(240 * pitch, 180 * pitch, 0.14 * size, 0.5),
    burst(random.fork("wires"), { band: Filter.highPass(1600 * pitch), seconds: 0.22 * size, gain: 0.7 }),
  ]);
export const snare = drumFamily(0.3, snareHit);

export const cymbalHit = ({ pitch, size, random }: Shape): Source =>
  sumOf([
    burst(random.fork("wash"), { band: Filter.highPass(5200 * pitch), seconds: 1.5 * size, gain: 0.6 }),
    ringing(
      [3100, 4370, 5230, 6610, 8190].map((hz) => ({ hz: hz * pitch, gain: 0.07, seconds: 1.1 * size })),
    ),
  ]);
export const cymbal = drumFamily(1.6, cymbalHit);
