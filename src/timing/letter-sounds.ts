/**
 * How letters sound, as far as loudness and brightness tell: enough to find them in their sound when their order is known.
 * Broad classes of phonetics, for alphabets whose letters are sounds; none of a voice or a language.
 */

export type SoundKind = "vowel" | "sonorant" | "hiss" | "stop" | "other" | "gap";

/** Mean and spread of what a kind of sound is like: dB below loud speech, and brightness from 0 to 1. */
export interface SoundShape {
  readonly levelDb: number;
  readonly levelSpreadDb: number;
  readonly brightness: number;
  readonly brightnessSpread: number;
  /** How long it lasts against others. */
  readonly weight: number;
}

export const SOUND_SHAPES: Readonly<Record<SoundKind, SoundShape>> = {
  vowel: { levelDb: -5, levelSpreadDb: 6, brightness: 0.1, brightnessSpread: 0.1, weight: 1.2 },
  sonorant: { levelDb: -10, levelSpreadDb: 6, brightness: 0.06, brightnessSpread: 0.1, weight: 0.9 },
  hiss: { levelDb: -16, levelSpreadDb: 8, brightness: 0.35, brightnessSpread: 0.25, weight: 1 },
  stop: { levelDb: -22, levelSpreadDb: 10, brightness: 0.2, brightnessSpread: 0.3, weight: 0.9 },
  other: { levelDb: -8, levelSpreadDb: 12, brightness: 0.2, brightnessSpread: 0.4, weight: 1 },
  gap: { levelDb: -45, levelSpreadDb: 12, brightness: 0.2, brightnessSpread: 0.5, weight: 1 },
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

/** `character`: one grapheme. */
export function soundKindOf(character: string): SoundKind {
  const lower = character.toLowerCase();
  const known = KINDS.get(lower);
  if (known !== undefined) return known;
  const parts = lower.normalize("NFD");
  if (HISSING.test(parts)) return "hiss";
  const base = KINDS.get(parts[0] ?? "");
  if (base !== undefined) return base;
  return /[\p{L}\p{N}\p{S}]/u.test(character) ? "other" : "gap";
}
