/**
 * What features letters have, as far as level and spectral tilt show: enough to align them when their order is known.
 * Broad classes of phonetics, for alphabets whose letters are sounds; none of a voice or a language.
 */

export type LetterClass = "vowel" | "sonorant" | "hiss" | "stop" | "other" | "gap" | "punctuation";

/** Mean and spread of the features of a class: dB below loud speech, and spectral tilt from 0 to 1. */
export interface ClassFeatures {
  readonly levelDb: number;
  readonly levelSpreadDb: number;
  readonly tilt: number;
  readonly tiltSpread: number;
  /** How long it lasts against others. */
  readonly weight: number;
  /** Nothing is too quiet for it: a stop begins with its closure. */
  readonly mayBeSilent?: true;
}

export const CLASS_FEATURES: Readonly<Record<LetterClass, ClassFeatures>> = {
  vowel: { levelDb: -5, levelSpreadDb: 7, tilt: 0.12, tiltSpread: 0.12, weight: 1.15 },
  sonorant: { levelDb: -11, levelSpreadDb: 5, tilt: 0.06, tiltSpread: 0.1, weight: 0.9 },
  hiss: { levelDb: -16, levelSpreadDb: 10, tilt: 0.35, tiltSpread: 0.5, weight: 1 },
  stop: {
    levelDb: -22,
    levelSpreadDb: 10,
    tilt: 0.25,
    tiltSpread: 0.35,
    weight: 0.9,
    mayBeSilent: true,
  },
  other: { levelDb: -8, levelSpreadDb: 12, tilt: 0.2, tiltSpread: 0.4, weight: 1 },
  gap: {
    levelDb: -40,
    levelSpreadDb: 15,
    tilt: 0.15,
    tiltSpread: 0.7,
    weight: 1,
    mayBeSilent: true,
  },
  punctuation: {
    levelDb: -40,
    levelSpreadDb: 5,
    tilt: 0.2,
    tiltSpread: 0.5,
    weight: 1,
    mayBeSilent: true,
  },
};

const KINDS = new Map<string, LetterClass>();
const LETTERS: readonly (readonly [LetterClass, string])[] = [
  ["vowel", "aeiouyæœøıаеёиоуыэюяіїєαεηιουω"],
  ["sonorant", "lmnrwjłŋйлмнрўљњλμνρ"],
  ["hiss", "szfvhxßçþðжзсфхцчшщґсςζθσφχ"],
  ["stop", "pbtdkgqcбвгдкптђћџπβτδκγξψ"],
];
for (const [kind, letters] of LETTERS) for (const letter of letters) KINDS.set(letter, kind);
/** Diacritics that make a hiss of a letter: č, š, ž, ś, ź, ć. */
const HISSING = /^[cszCSZ][\u0301\u030c\u0327]/u;

/** Share of its time that a letter takes which makes one sound with the one before it: "ll", "sh", "ck". */
const JOINED_SHARE = 0.3;
const JOINED = /^(?:[cgkpstwr]h|ck|[cs]z)$/;

/** White space, or punctuation: not said. */
export function isBlank(of: LetterClass): boolean {
  return of === "gap" || of === "punctuation";
}

/** How much of its time a letter takes behind another one. */
export function lengthShareOf(character: string, before: string): number {
  const pair = (before + character).toLowerCase();
  return pair.length === 2 && (pair[0] === pair[1] || JOINED.test(pair)) ? JOINED_SHARE : 1;
}

/** `character`: one grapheme. */
export function classOf(character: string): LetterClass {
  const lower = character.toLowerCase();
  const known = KINDS.get(lower);
  if (known !== undefined) return known;
  const parts = lower.normalize("NFD");
  if (HISSING.test(parts)) return "hiss";
  const base = KINDS.get(parts[0] ?? "");
  if (base !== undefined) return base;
  if (/[\p{L}\p{N}\p{S}]/u.test(character)) return "other";
  return /\p{P}/u.test(character) ? "punctuation" : "gap";
}
