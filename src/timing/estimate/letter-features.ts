/**
 * How letters sound, as far as loudness and brightness tell: enough to find them in their sound when their order is known.
 * Broad classes of phonetics, for alphabets whose letters are sounds; none of a voice or a language.
 */

export type SoundKind = "vowel" | "sonorant" | "hiss" | "stop" | "other" | "gap" | "mark";

/** Mean and spread of what a kind of sound is like: dB below loud speech, and brightness from 0 to 1. */
export interface SoundShape {
  readonly levelDb: number;
  readonly levelSpreadDb: number;
  readonly brightness: number;
  readonly brightnessSpread: number;
  /** How long it lasts against others. */
  readonly weight: number;
  /** Nothing is too quiet for it: a stop begins with its closure. */
  readonly mayBeSilent?: true;
}

export const SOUND_SHAPES: Readonly<Record<SoundKind, SoundShape>> = {
  vowel: { levelDb: -5, levelSpreadDb: 7, brightness: 0.12, brightnessSpread: 0.12, weight: 1.15 },
  sonorant: { levelDb: -11, levelSpreadDb: 5, brightness: 0.06, brightnessSpread: 0.1, weight: 0.9 },
  hiss: { levelDb: -16, levelSpreadDb: 10, brightness: 0.35, brightnessSpread: 0.5, weight: 1 },
  stop: {
    levelDb: -22,
    levelSpreadDb: 10,
    brightness: 0.25,
    brightnessSpread: 0.35,
    weight: 0.9,
    mayBeSilent: true,
  },
  other: { levelDb: -8, levelSpreadDb: 12, brightness: 0.2, brightnessSpread: 0.4, weight: 1 },
  gap: {
    levelDb: -40,
    levelSpreadDb: 15,
    brightness: 0.15,
    brightnessSpread: 0.7,
    weight: 1,
    mayBeSilent: true,
  },
  mark: {
    levelDb: -40,
    levelSpreadDb: 5,
    brightness: 0.2,
    brightnessSpread: 0.5,
    weight: 1,
    mayBeSilent: true,
  },
};

const KINDS = new Map<string, SoundKind>();
const LETTERS: readonly (readonly [SoundKind, string])[] = [
  ["vowel", "aeiouyæœøıаеёиоуыэюяіїєαεηιουω"],
  ["sonorant", "lmnrwjłŋйлмнрўљњλμνρ"],
  ["hiss", "szfvhxßçþðжзсфхцчшщґсςζθσφχ"],
  ["stop", "pbtdkgqcбвгдкптђћџπβτδκγξψ"],
];
for (const [kind, letters] of LETTERS) for (const letter of letters) KINDS.set(letter, kind);
/** Marks that make a hiss of a letter: č, š, ž, ś, ź, ć. */
const HISSING = /^[cszCSZ][\u0301\u030c\u0327]/u;

/** Share of its time that a letter takes which makes one sound with the one before it: "ll", "sh", "ck". */
const JOINED_SHARE = 0.3;
const JOINED = /^(?:[cgkpstwr]h|ck|[cs]z)$/;

/** White space, or a mark: not said. */
export function isBlank(kind: SoundKind): boolean {
  return kind === "gap" || kind === "mark";
}

/** How much of its time a letter takes behind another one. */
export function soundShareOf(character: string, before: string): number {
  const pair = (before + character).toLowerCase();
  return pair.length === 2 && (pair[0] === pair[1] || JOINED.test(pair)) ? JOINED_SHARE : 1;
}

/** `character`: one grapheme. */
export function soundKindOf(character: string): SoundKind {
  const lower = character.toLowerCase();
  const known = KINDS.get(lower);
  if (known !== undefined) return known;
  const parts = lower.normalize("NFD");
  if (HISSING.test(parts)) return "hiss";
  const base = KINDS.get(parts[0] ?? "");
  if (base !== undefined) return base;
  if (/[\p{L}\p{N}\p{S}]/u.test(character)) return "other";
  return /\p{P}/u.test(character) ? "mark" : "gap";
}
