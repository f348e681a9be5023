/** From a prompt to what is played when: layers with their lengths, shapes and loudness. */
import { samplesIn } from "./dsp.ts";
import { colour } from "./families/tones.ts";
import type { Family, Shape, Surface } from "./family.ts";
import { type NamedSound, readPrompt } from "./prompt.ts";
import { hashText, Random } from "./random.ts";
import { type Change, type FamilyName, familyOf } from "./words/vocabulary.ts";

/** What is asked for. */
export interface SoundSpec {
  readonly text: string;
  /** Null: as long as its sounds are by nature, 0.5-10. */
  readonly durationSeconds: number | null;
  /** 0-1: how strictly the layers of the words are followed. */
  readonly influence: number;
  /** The end goes on into the beginning. */
  readonly isLooped: boolean;
}

/** When hits begin: `count` of them (null: up to the end), one after `everySeconds`. */
interface HitPlan {
  readonly count: number | null;
  readonly everySeconds: number;
  /** 0-1: part of the distance by which each may be early or late. */
  readonly unevenness: number;
  /** Beyond the end, for the joint of a loop. */
  readonly goesOn: boolean;
}

export interface Layer {
  readonly family: Family;
  readonly shape: Shape;
  readonly gain: number;
  /** Hz; null: nothing is taken away. */
  readonly topHz: number | null;
  /** Rounds the peaks off. */
  readonly isDriven: boolean;
  /** Null: none. */
  readonly echoSeconds: number | null;
  readonly hits: HitPlan | null;
  /** Where it begins and how long new things begin in it. */
  readonly startSample: number;
  readonly samples: number;
  /** 0-1: how far each hit's pitch may be off. */
  readonly pitchSpread: number;
}

export interface SoundPlan {
  /** Exact length at 44.1 kHz. */
  readonly samples: number;
  /** None where the words name no sound that is known. */
  readonly layers: readonly Layer[];
  /** Words that were not understood, as they were written; each once. */
  readonly unknownWords: readonly string[];
  /** Echo of the place; null: none. */
  readonly echoSeconds: number | null;
  /** 0-1: its highest sample, as a part of the highest that a sound has. */
  readonly peak: number;
  readonly isLooped: boolean;
}

const MIN_SECONDS = 0.5;
const MAX_NATURAL_SECONDS = 10;
/** Where a single thing would be followed by a long silence, it is done again. */
const LONELY_FACTOR = 2.5;
/** Hits where only "again and again" is said. */
const REPEATED_COUNT = 4;
/** How loud the added texture is at influence 0, beside the loudest layer. */
const COLOUR_GAIN = 0.6;
/** The gain of words that has the highest peak, 3 dB over a sound without any: what is louder is driven, not higher. */
const FULL_GAIN = Math.SQRT2;

/** The same plan for the same spec. `spec` is in its ranges. */
export function planSound(spec: SoundSpec): SoundPlan {
  const prompt = readPrompt(spec.text, { isLengthGiven: spec.durationSeconds !== null });
  const random = new Random(hashText(spec.text));
  const variation = 1 - spec.influence;
  const steps = prompt.steps.map((sounds, step) =>
    sounds.map((sound, index) => drawLayer(sound, random.fork(`${step}.${index}`), variation)),
  );
  const echoSeconds = Math.max(0, ...prompt.placeChanges.map((change) => change.echoSeconds ?? 0));
  const natural = steps.map((layers) => Math.max(...layers.map(naturalSeconds)));
  const sum = natural.reduce((total, seconds) => total + seconds, 0);
  const wanted = spec.durationSeconds ?? clamp(sum + echoSeconds / 2, MIN_SECONDS, MAX_NATURAL_SECONDS);
  const samples = samplesIn(wanted);
  let startSample = 0;
  const layers = steps.flatMap((drafts, step) => {
    const seconds = (wanted * (natural[step] ?? 0)) / sum;
    const begins = startSample;
    startSample += samplesIn(seconds);
    const isWholeLoop = spec.isLooped && steps.length === 1;
    return drafts.map((draft) => ({
      ...draft,
      startSample: begins,
      samples: samplesIn(seconds),
      hits: planHits(draft, { seconds, isWholeLoop, variation }),
    }));
  });
  const loudest = Math.max(...prompt.steps.flat().map(({ changes }) => mergeChanges(changes).gain));
  const added = colourLayer(random.fork("colour"), { samples, variation, loudest });
  return {
    samples,
    unknownWords: prompt.unknownWords,
    layers: layers.length === 0 || added === null ? layers : [...layers, added],
    echoSeconds: echoSeconds > 0 ? echoSeconds : null,
    peak: clamp(loudest / FULL_GAIN, 0, 1),
    isLooped: spec.isLooped,
  };
}

interface Draft extends Omit<Layer, "startSample" | "samples" | "hits"> {
  readonly sound: NamedSound;
}

/** The draws are the same at every influence: it only says how far they lead away from the plain layer. */
function drawLayer(sound: NamedSound, random: Random, variation: number): Draft {
  const merged = mergeChanges(sound.changes);
  const shape: Shape = {
    pitch: clamp(merged.pitch * 2 ** (0.35 * variation * away(random)), 0.25, 4),
    rate: clamp(merged.rate * 2 ** (0.4 * variation * random.signed()), 0.25, 4),
    size: clamp(merged.size * 2 ** (0.3 * variation * random.signed()), 0.3, 3),
    density: clamp(merged.density * 2 ** (0.6 * variation * random.signed()), 0.2, 4),
    surface: merged.surface,
    random: random.fork("sound"),
  };
  return {
    sound,
    family: familyOf(sound.name),
    shape,
    gain: merged.gain * 2 ** (0.8 * variation * random.signed()) * balanceOf(sound.name),
    topHz: merged.topHz,
    isDriven: merged.gain > 1.5,
    echoSeconds: merged.echoSeconds,
    pitchSpread: isTuned(sound.name) ? 0 : 0.015 + 0.12 * variation,
  };
}

function isTuned(name: FamilyName): boolean {
  const family = familyOf(name);
  return family.kind === "hits" && family.isTuned === true;
}

/** Textures that go on are heard under what happens once. */
function balanceOf(name: FamilyName): number {
  return familyOf(name).kind === "texture" ? 0.7 : 1;
}

interface Merged extends Required<Pick<Change, "pitch" | "rate" | "size" | "density" | "gain">> {
  readonly topHz: number | null;
  readonly echoSeconds: number | null;
  readonly surface: Surface | null;
}

function mergeChanges(changes: readonly Change[]): Merged {
  const product = (key: "pitch" | "rate" | "size" | "density" | "gain") =>
    changes.reduce((value, change) => value * (change[key] ?? 1), 1);
  const tops = changes.flatMap((change) => change.topHz ?? []);
  const echoes = changes.flatMap((change) => change.echoSeconds ?? []);
  return {
    pitch: product("pitch"),
    rate: product("rate"),
    size: product("size"),
    density: product("density"),
    gain: clamp(product("gain"), 0.1, 6),
    topHz: tops.length === 0 ? null : Math.min(...tops),
    echoSeconds: echoes.length === 0 ? null : Math.max(...echoes),
    surface: changes.findLast((change) => change.surface !== undefined)?.surface ?? null,
  };
}

function naturalSeconds(draft: Draft): number {
  const { family, shape, sound } = draft;
  if (family.kind === "texture") return family.seconds * Math.max(0.7, shape.size);
  const usual = sound.isRepeated ? Math.max(family.usualCount, REPEATED_COUNT) : family.usualCount;
  const count = sound.count ?? usual;
  const seconds = ((count - 1) * family.everySeconds) / shape.rate + family.seconds * shape.size;
  return clamp(seconds, 0.1, MAX_NATURAL_SECONDS);
}

function planHits(
  draft: Draft,
  options: { readonly seconds: number; readonly isWholeLoop: boolean; readonly variation: number },
): HitPlan | null {
  const { family, shape, sound } = draft;
  if (family.kind === "texture") return null;
  const { seconds, isWholeLoop, variation } = options;
  const unevenness = Math.min(0.9, family.unevenness + 0.35 * variation);
  const usual = family.everySeconds / shape.rate;
  const isMany = sound.isRepeated || family.usualCount > 1 || seconds > LONELY_FACTOR * naturalSeconds(draft);
  const count = sound.count ?? (isMany ? null : 1);
  if (count !== null) {
    const room = seconds - Math.min(family.seconds * shape.size * 0.5, seconds * 0.35);
    const everySeconds = Math.max(0.02, Math.min(usual, room / Math.max(1, count - 1)));
    return { count, unevenness, everySeconds, goesOn: false };
  }
  // In a loop the rhythm goes on over the joint.
  const everySeconds = isWholeLoop ? seconds / Math.max(1, Math.round(seconds / usual)) : usual;
  return { count, unevenness, everySeconds: Math.max(0.02, everySeconds), goesOn: isWholeLoop };
}

/** What low influence adds: a texture of its own, from the prompt's hash. Null where nothing is added. */
function colourLayer(
  random: Random,
  options: { readonly samples: number; readonly variation: number; readonly loudest: number },
): Layer | null {
  const { samples, variation, loudest } = options;
  if (variation <= 0) return null;
  return {
    family: colour,
    shape: { pitch: 1, rate: 1, size: 1, density: 1, surface: null, random },
    gain: COLOUR_GAIN * variation ** 3 * loudest,
    topHz: null,
    isDriven: false,
    echoSeconds: null,
    hits: null,
    startSample: 0,
    samples,
    pitchSpread: 0,
  };
}

/** -1..1 without the middle: what is led away is led away far enough to be heard. */
function away(random: Random): number {
  const drawn = random.signed();
  return drawn < 0 ? drawn / 2 - 0.5 : drawn / 2 + 0.5;
}

function clamp(value: number, low: number, high: number): number {
  return Math.min(high, Math.max(low, value));
}
