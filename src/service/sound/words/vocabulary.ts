/** What a prompt may name: kinds of sound, and what words around them change. The words themselves are in a file a language. */
import { bird, cat, cow, cricket, dog, frog, horse, sheep } from "../families/animals.ts";
import { bell, chime, gong, phone } from "../families/bells.ts";
import { cymbal, drum, kick, snare } from "../families/drums.ts";
import {
  applause,
  creak,
  explosion,
  footsteps,
  gallop,
  glass,
  gunshot,
  heartbeat,
  knock,
  slam,
  typing,
} from "../families/impacts.ts";
import { clock, engine, helicopter, horn, hum } from "../families/machines.ts";
import {
  cello,
  clarinet,
  drumKit,
  flute,
  guitar,
  harp,
  organ,
  piano,
  trumpet,
  violin,
  xylophone,
} from "../families/music.ts";
import { bubbles, drop, fire, rain, sea, stream, thunder, wind } from "../families/nature.ts";
import { cry, laugh, snore, whistle } from "../families/people.ts";
import { alarm, beep, click, drone, laser, radioNoise, siren, whoosh } from "../families/tones.ts";
import type { Family, Surface } from "../family.ts";

const FAMILIES = {
  rain,
  thunder,
  wind,
  sea,
  stream,
  fire,
  drop,
  bubbles,
  explosion,
  gunshot,
  footsteps,
  gallop,
  knock,
  creak,
  slam,
  bell,
  chime,
  gong,
  clock,
  glass,
  engine,
  helicopter,
  horn,
  hum,
  siren,
  alarm,
  phone,
  beep,
  click,
  whoosh,
  laser,
  bird,
  dog,
  cat,
  cow,
  sheep,
  horse,
  cricket,
  frog,
  applause,
  laugh,
  cry,
  snore,
  whistle,
  heartbeat,
  typing,
  piano,
  guitar,
  harp,
  xylophone,
  violin,
  cello,
  flute,
  clarinet,
  trumpet,
  organ,
  drumKit,
  drum,
  kick,
  snare,
  cymbal,
  drone,
  radioNoise,
} as const satisfies Readonly<Record<string, Family>>;

export type FamilyName = keyof typeof FAMILIES;

export function familyOf(name: FamilyName): Family {
  return FAMILIES[name];
}

/** The families that say the same in the company of this one: "door" beside "knock". */
const ABSORBED: Readonly<Partial<Record<FamilyName, readonly FamilyName[]>>> = {
  rain: ["drop"],
  sea: ["stream", "glass", "slam"],
  stream: ["footsteps"],
  drop: ["stream"],
  bubbles: ["stream"],
  gunshot: ["fire"],
  gallop: ["horse", "footsteps"],
  knock: ["creak"],
  slam: ["creak"],
  bell: ["creak"],
  organ: ["bell"],
  chime: ["bell", "wind", "creak"],
  glass: ["slam"],
  engine: ["footsteps"],
  helicopter: ["engine"],
  horn: ["engine"],
  siren: ["alarm", "engine"],
  alarm: ["clock", "engine", "bell"],
  phone: ["bell"],
  laser: ["gunshot"],
  heartbeat: ["drum"],
  typing: ["click"],
  drumKit: ["drum"],
  kick: ["drum"],
  snare: ["drum"],
  cymbal: ["slam", "drum"],
  radioNoise: ["hum"],
};

/** Whether `name` says what `other` says, and better, where both are in one clause. */
export function isAbsorbed(other: FamilyName, name: FamilyName): boolean {
  return ABSORBED[name]?.includes(other) === true;
}

/** Factors and settings that a word asks for; several words multiply. */
export interface Change {
  readonly pitch?: number;
  readonly rate?: number;
  readonly size?: number;
  readonly density?: number;
  /** Loudness beside other layers; over 1 also rounds the peaks off. */
  readonly gain?: number;
  /** Hz above which the sound is taken away. */
  readonly topHz?: number;
  /** Seconds of echo. */
  readonly echoSeconds?: number;
  readonly surface?: Surface;
  /** Whether the word names the place: it holds for the whole prompt. */
  readonly isPlace?: boolean;
}

const CHANGES = {
  loud: { gain: 2 },
  soft: { gain: 0.4, density: 0.55, topHz: 4200 },
  distant: { gain: 0.45, topHz: 1300, echoSeconds: 1.6 },
  muffled: { topHz: 700 },
  near: { gain: 1.3 },
  heavy: { gain: 1.4, density: 2, pitch: 0.85 },
  deep: { pitch: 0.6 },
  high: { pitch: 1.6 },
  fast: { rate: 1.7 },
  slow: { rate: 0.6 },
  big: { pitch: 0.7, size: 1.4, gain: 1.3 },
  small: { pitch: 1.45, size: 0.7, gain: 0.8 },
  long: { size: 1.6 },
  short: { size: 0.55 },
  man: { pitch: 0.6 },
  woman: { pitch: 1.1 },
  child: { pitch: 1.25 },
  metal: { surface: "metal" },
  wood: { surface: "wood" },
  gravel: { surface: "gravel" },
  snow: { surface: "snow" },
  grass: { surface: "grass" },
  wet: { surface: "water" },
  stone: { surface: "stone" },
  cave: { echoSeconds: 3.2, isPlace: true },
  hall: { echoSeconds: 2, isPlace: true },
  room: { echoSeconds: 0.7, isPlace: true },
} as const satisfies Readonly<Record<string, Change>>;

export type ChangeName = keyof typeof CHANGES;

export function changeOf(name: ChangeName): Change {
  return CHANGES[name];
}

/** Words that say how sounds stand to each other: what follows `next` comes later, what follows `after` comes first. */
export const LINKS = ["and", "next", "after", "without", "filler"] as const;
/** `filler` says nothing of the sound: articles, prepositions, "the sound of". */
export type Link = (typeof LINKS)[number];

/**
 * The words of a language for each meaning, with spaces between; the words of a phrase are joined by "_". Case and accents
 * do not matter. Where two languages share a word, the first one of `meanings.ts` has it.
 */
export interface Language {
  readonly sounds: Readonly<Record<FamilyName, string>>;
  readonly changes: Readonly<Record<ChangeName, string>>;
  readonly links: Readonly<Record<Link, string>>;
  /** One to twelve, in their order; words of one number are joined by "|", and "_" stands where there is none. */
  readonly numbers: string;
  /** More words for numbers. */
  readonly times: Readonly<Record<string, number>>;
}
