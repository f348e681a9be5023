/** What a kind of sound is: a texture that goes on, or hits that come one after another. */
import { SAMPLE_RATE, type Source, samplesIn } from "./dsp.ts";
import { Random } from "./random.ts";

/** What it is made of, or walked on. */
export type Surface = "metal" | "wood" | "stone" | "gravel" | "snow" | "grass" | "water";

/** How the words around a sound want it. */
export interface Shape {
  /** Factor on every frequency: 0.25..4. */
  readonly pitch: number;
  /** Factor on how fast things follow each other: 0.25..4. */
  readonly rate: number;
  /** Factor on how long one thing lasts: 0.3..3. */
  readonly size: number;
  /** Factor on how many parts there are: 0.2..4. */
  readonly density: number;
  readonly surface: Surface | null;
  readonly random: Random;
}

/** One sound with an end. */
export interface Hit {
  readonly samples: number;
  readonly source: Source;
}

export interface TextureFamily {
  readonly kind: "texture";
  readonly seconds: number;
  create(shape: Shape): Source;
}

export interface HitFamily {
  readonly kind: "hits";
  /** One alone, until nothing is heard. */
  readonly seconds: number;
  /** From one to the next. */
  readonly everySeconds: number;
  /** How many there are where nothing is said of it; more than one: they go on to the end. */
  readonly usualCount: number;
  /** How uneven the distances are by nature: 0..1. */
  readonly unevenness: number;
  /** Notes of one scale: no hit may be off its pitch. */
  readonly isTuned?: true;
  create(shape: Shape, index: number): Hit;
}

export type Family = TextureFamily | HitFamily;

/** The factors of the shape that its sound hangs on: each family takes what it looks at when it is created. */
export function shapeKeysOf(family: Family): ReadonlySet<string> {
  const keys = new Set<string>();
  const plain: Shape = { pitch: 1, rate: 1, size: 1, density: 1, surface: null, random: new Random(0) };
  const watched = new Proxy(plain, {
    get: (shape, key) => {
      keys.add(String(key));
      return Reflect.get(shape, key);
    },
  });
  family.create(watched, 0);
  return keys;
}

/** Hits that sound at the same time; the oldest gives way. */
const MAX_SOUNDING = 40;

/** Sums hits as they come and forgets them when they are over. */
export class HitMixer {
  #sounding: { left: number; readonly source: Source }[] = [];

  add({ samples, source }: Hit): void {
    if (this.#sounding.length >= MAX_SOUNDING) this.#sounding.shift();
    this.#sounding.push({ left: samples, source });
  }

  next(): number {
    const sounding = this.#sounding;
    let sum = 0;
    let isOver = false;
    for (let index = 0; index < sounding.length; index += 1) {
      const one = sounding[index];
      if (one === undefined) continue;
      sum += one.source();
      one.left -= 1;
      if (one.left <= 0) isOver = true;
    }
    if (isOver) this.#sounding = sounding.filter(({ left }) => left > 0);
    return sum;
  }
}

/** Hits at random times, so many a second on average. */
export function scattered(random: Random, perSecond: number, create: (random: Random) => Hit): Source {
  const mixer = new HitMixer();
  const chance = perSecond / SAMPLE_RATE;
  return () => {
    if (random.unit() < chance) mixer.add(create(random));
    return mixer.next();
  };
}

/** Fades the last 4 ms, so that a cut hit does not click. */
export function hit(seconds: number, source: Source): Hit {
  const samples = Math.max(1, samplesIn(seconds));
  const fade = Math.min(samples, samplesIn(0.004));
  let left = samples;
  return {
    samples,
    source: () => {
      left -= 1;
      const value = source();
      return left < fade ? (value * Math.max(0, left)) / fade : value;
    },
  };
}

/** A hit whose value depends on how far it is: 0..1 of its length. */
export function shapedHit(seconds: number, valueAt: (part: number) => number): Hit {
  const samples = Math.max(1, samplesIn(seconds));
  let at = 0;
  return hit(seconds, () => {
    at += 1;
    return valueAt(at / samples);
  });
}
