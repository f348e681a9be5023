/** The words that prompts are read for: names of sounds, words that shape them, and numbers. */
import { bird, cat, cricket, dog, frog } from "./animals.ts";
import { bell, chime, gong, phone } from "./bells.ts";
import { cymbal, drum, kick, snare } from "./drums.ts";
import type { Family, Surface } from "./family.ts";
import {
  applause,
  creak,
  explosion,
  footsteps,
  glass,
  gunshot,
  heartbeat,
  knock,
  slam,
  typing,
} from "./impacts.ts";
import { clock, engine, helicopter, horn, hum } from "./machines.ts";
import { bubbles, drop, fire, rain, sea, stream, thunder, wind } from "./nature.ts";
import { alarm, beep, click, drone, laser, neutral, radioNoise, siren, whoosh } from "./tones.ts";

/**
 * `words` are in the singular; plurals and other endings are found by `stems`. `absorbs` names the families that say the
 * same in the company of this one: "door" beside "knock".
 */
const ROWS = {
  rain: { family: rain, words: "rain rainfall rainstorm downpour drizzle shower", absorbs: ["drop"] },
  thunder: { family: thunder, words: "thunder thunderclap thunderstorm lightning" },
  wind: { family: wind, words: "wind breeze gust windy storm gale howl blizzard" },
  sea: {
    family: sea,
    words: "sea ocean wave surf beach shore seaside tide",
    absorbs: ["stream", "glass", "slam"],
  },
  stream: {
    family: stream,
    words: "river stream brook creek waterfall water flow trickle",
    absorbs: ["footsteps"],
  },
  fire: { family: fire, words: "fire fireplace campfire flame crackle burn bonfire" },
  drop: { family: drop, words: "drop droplet drip waterdrop plop", absorbs: ["stream"] },
  bubbles: { family: bubbles, words: "bubble boil gurgle bubbly", absorbs: ["stream"] },
  explosion: { family: explosion, words: "explosion explode blast bomb detonation boom grenade" },
  gunshot: {
    family: gunshot,
    words: "gunshot gun shot bang gunfire pistol rifle firework shoot",
    absorbs: ["fire"],
  },
  footsteps: { family: footsteps, words: "footstep step walk footfall run stride heel" },
  knock: { family: knock, words: "knock tap rap thud knuckle", absorbs: ["creak"] },
  creak: { family: creak, words: "creak creaky squeak hinge squeal door gate" },
  slam: { family: slam, words: "slam crash shut smash thump impact", absorbs: ["creak"] },
  bell: { family: bell, words: "bell ring church doorbell", absorbs: ["creak"] },
  chime: {
    family: chime,
    words: "chime jingle sparkle twinkle glockenspiel",
    absorbs: ["bell", "wind", "creak"],
  },
  gong: { family: gong, words: "gong tam-tam" },
  clock: { family: clock, words: "clock tick tock ticking watch metronome" },
  glass: { family: glass, words: "glass shatter window bottle break", absorbs: ["slam"] },
  engine: {
    family: engine,
    words: "engine car motor vehicle truck motorcycle motorbike bus tractor traffic train",
    absorbs: ["footsteps"],
  },
  helicopter: { family: helicopter, words: "helicopter chopper rotor", absorbs: ["engine"] },
  horn: { family: horn, words: "horn honk klaxon", absorbs: ["engine"] },
  hum: { family: hum, words: "hum buzz fridge refrigerator transformer" },
  siren: { family: siren, words: "siren ambulance police", absorbs: ["alarm", "engine"] },
  alarm: { family: alarm, words: "alarm alert warning", absorbs: ["clock", "engine", "bell"] },
  phone: { family: phone, words: "phone telephone ringtone", absorbs: ["bell"] },
  beep: { family: beep, words: "beep bleep blip notification tone" },
  click: { family: click, words: "click button interface ui switch tap-tap" },
  whoosh: { family: whoosh, words: "whoosh swoosh swish swipe whip swing" },
  laser: { family: laser, words: "laser zap sci-fi scifi blaster phaser", absorbs: ["gunshot"] },
  bird: { family: bird, words: "bird chirp tweet songbird birdsong sparrow" },
  dog: { family: dog, words: "dog bark puppy woof hound" },
  cat: { family: cat, words: "cat meow kitten miaow mew" },
  cricket: { family: cricket, words: "cricket cicada insect grasshopper" },
  frog: { family: frog, words: "frog toad croak ribbit" },
  applause: { family: applause, words: "applause clap audience ovation crowd" },
  heartbeat: { family: heartbeat, words: "heartbeat heart pulse", absorbs: ["drum"] },
  typing: { family: typing, words: "typing type keyboard typewriter keystroke", absorbs: ["click"] },
  drum: { family: drum, words: "drum tom timpani beat bongo" },
  kick: { family: kick, words: "kick bass-drum kickdrum", absorbs: ["drum"] },
  snare: { family: snare, words: "snare rimshot", absorbs: ["drum"] },
  cymbal: { family: cymbal, words: "cymbal hihat hi-hat", absorbs: ["slam", "drum"] },
  drone: { family: drone, words: "drone ambience ambient atmosphere pad spaceship" },
  radioNoise: {
    family: radioNoise,
    words: "static radio noise white-noise interference hiss",
    absorbs: ["hum"],
  },
  neutral: { family: neutral, words: "" },
} as const satisfies Readonly<Record<string, { family: Family; words: string; absorbs?: readonly string[] }>>;

export type FamilyName = keyof typeof ROWS;

export function familyOf(name: FamilyName): Family {
  return ROWS[name].family;
}

/** Whether `name` says what `other` says, and better, where both are in one clause. */
export function isAbsorbed(other: FamilyName, name: FamilyName): boolean {
  const row = ROWS[name];
  return "absorbs" in row && row.absorbs.some((absorbed) => absorbed === other);
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
  /** Of the place, not of one sound: holds for the whole prompt. */
  readonly isPlace?: boolean;
}

const CHANGES: readonly (readonly [string, Change])[] = [
  ["loud loudly strong powerful intense violent massive epic", { gain: 2 }],
  [
    "soft softly quiet quietly gentle gently faint faintly calm light lightly subtle",
    { gain: 0.4, density: 0.55, topHz: 4200 },
  ],
  ["distant distance far faraway away", { gain: 0.45, topHz: 1300, echoSeconds: 1.6 }],
  ["muffled underwater dull indoors", { topHz: 700 }],
  ["close near nearby", { gain: 1.3 }],
  ["heavy torrential dense busy", { gain: 1.4, density: 2, pitch: 0.85 }],
  ["deep low low-pitched bass dark", { pitch: 0.6 }],
  ["high high-pitched bright shrill sharp", { pitch: 1.6 }],
  ["fast quick quickly rapid rapidly hurried frantic", { rate: 1.7 }],
  ["slow slowly lazy", { rate: 0.6 }],
  ["big large huge giant enormous grand", { pitch: 0.7, size: 1.4, gain: 1.3 }],
  ["small little tiny mini miniature", { pitch: 1.45, size: 0.7, gain: 0.8 }],
  ["long sustained", { size: 1.6 }],
  ["short brief", { size: 0.55 }],
  ["metal metallic iron steel tin", { surface: "metal" }],
  ["wood wooden parquet", { surface: "wood" }],
  ["gravel pebble leaf leaves", { surface: "gravel" }],
  ["snow snowy", { surface: "snow" }],
  ["grass grassy carpet sand sandy", { surface: "grass" }],
  ["puddle wet mud muddy", { surface: "water" }],
  ["stone concrete pavement marble", { surface: "stone" }],
  ["cave cavern cathedral tunnel", { echoSeconds: 3.2, isPlace: true }],
  ["echo echoing reverb reverberant hall stadium church-like", { echoSeconds: 2, isPlace: true }],
  ["room indoor corridor hallway", { echoSeconds: 0.7, isPlace: true }],
];

const NUMBERS = "zero one two three four five six seven eight nine ten eleven twelve".split(" ");
const TIMES: Readonly<Record<string, number>> = {
  single: 1,
  once: 1,
  twice: 2,
  double: 2,
  thrice: 3,
  triple: 3,
  couple: 2,
};

/** What one word means to a prompt. */
export type Meaning =
  | { readonly kind: "sound"; readonly name: FamilyName; readonly isRepeated: boolean }
  | { readonly kind: "change"; readonly change: Change }
  | { readonly kind: "count"; readonly count: number };

const SOUND_WORDS: ReadonlyMap<string, FamilyName> = new Map(
  (Object.keys(ROWS) as FamilyName[]).flatMap((name) =>
    ROWS[name].words
      .split(" ")
      .filter((word) => word !== "")
      .map((word) => [word, name] as const),
  ),
);
const CHANGE_WORDS: ReadonlyMap<string, Change> = new Map(
  CHANGES.flatMap(([words, change]) => words.split(" ").map((word) => [word, change] as const)),
);

/** The most hits that a number in a prompt asks for. */
const MAX_COUNT = 64;

/** Null for a word that says nothing of the sound. `word` is in lower case. */
export function meaningOf(word: string): Meaning | null {
  const count =
    NUMBERS.indexOf(word) > 0
      ? NUMBERS.indexOf(word)
      : (TIMES[word] ?? (/^\d{1,3}$/.test(word) ? Number(word) : 0));
  if (count > 0) return { kind: "count", count: Math.min(MAX_COUNT, count) };
  const change = CHANGE_WORDS.get(word) ?? CHANGE_WORDS.get(word.replace(/s$/, ""));
  if (change !== undefined) return { kind: "change", change };
  for (const stem of stems(word)) {
    const name = SOUND_WORDS.get(stem);
    if (name !== undefined)
      return { kind: "sound", name, isRepeated: stem !== word && /(?:s|ing)$/.test(word) };
  }
  return null;
}

/** The word, and what it may be a form of: plurals, "-ing", "-ed". */
function stems(word: string): readonly string[] {
  const found = [word];
  for (const ending of ["s", "es", "ing", "ed", "y"]) {
    if (!word.endsWith(ending) || word.length - ending.length < 3) continue;
    const bare = word.slice(0, -ending.length);
    found.push(bare, `${bare}e`);
    if (/(.)\1$/.test(bare)) found.push(bare.slice(0, -1));
  }
  if (word.endsWith("ies")) found.push(`${word.slice(0, -3)}y`);
  return found;
}
