/**
 * What a word sounds like, as far as its spelling shows: rules for English and eight languages that are written nearly as
 * they are spoken, letter values for other Latin, Cyrillic and Greek text, Korean by its vowels; elsewhere the mouth opens
 * and closes once a character.
 */
import { LetterRules, type LetterSounds } from "./letter-rules.ts";
import type { Phone } from "./phones.ts";
import { ENGLISH, ENGLISH_DIGITS } from "./rules-english.ts";
import { EUROPEAN, LATIN } from "./rules-european.ts";

interface Speller {
  readonly rules: LetterRules;
  readonly digits: readonly string[];
}

/** Letters of other alphabets -> a Latin one with its value. */
const TO_LATIN: ReadonlyMap<string, string> = new Map(
  Object.entries({
    ...pairs("абвгдеёжзийклмнопрстуфхцчшщъыьэюяіїєґў", "abvgdeožzijklmnoprstufhsčšš-y-eüaiiegu"),
    ...pairs("αάβγδεέζηήθικίλμνξοόπρσςτυύφχψωώ", "aavgdeeziiþikilmnxooprsstiifkpoo"),
  }),
);
/** Where a Korean syllable's vowel is wide, round or neither; by the order of its 21 vowels in Unicode (jungseong). */
const HANGUL_VOWELS: readonly Phone[] = [
  ...[
    "AA",
    "EH",
    "AA",
    "EH",
    "AO",
    "EH",
    "AO",
    "EH",
    "OW",
    "AA",
    "EH",
    "OW",
    "OW",
    "UW",
    "AO",
    "EH",
    "IY",
    "UW",
  ],
  ...["IH", "IY", "IY"],
] as Phone[];
const HANGUL = { first: 0xac00, last: 0xd7a3, codas: 28, vowels: 21 } as const;
/** Scripts whose combining vowel signs open the mouth as letters do are one. */
const SYLLABLE: readonly Phone[] = ["D", "AH"];

const spellers: ReadonlyMap<string, Speller> = new Map<string, Speller>([
  ["en", { rules: new LetterRules(ENGLISH, LATIN), digits: ENGLISH_DIGITS.split(" ") }],
  ...Object.entries(EUROPEAN).map(
    ([code, { rules, digits }]) =>
      [code, { rules: new LetterRules(rules, LATIN), digits: digits.split(" ") }] as const,
  ),
]);
const latin: Speller = { rules: new LetterRules(LATIN), digits: ENGLISH_DIGITS.split(" ") };

/**
 * The sounds of a word with the letters that make them. `language`: ISO 639-1, with or without a region; without it
 * Latin letters are read as English.
 */
export function soundsOfWord(word: string, language = "en"): LetterSounds[] {
  const code = language.toLowerCase().split(/[-_]/)[0] ?? "";
  const speller = spellers.get(code) ?? latin;
  // Letter for letter, so that offsets stay.
  const letters = Array.from({ length: word.length }, (_, at) => smallLetter(word.charAt(at)));
  const sounds: LetterSounds[] = [];
  for (let at = 0; at < letters.length; ) {
    const letter = letters[at] ?? "";
    const kind = kindOf(letter);
    let end = at + 1;
    if (kind === "alphabet") {
      while (end < letters.length && kindOf(letters[end] ?? "") === "alphabet") end += 1;
      const from = at;
      const span = letters.slice(at, end);
      const isLatin = span.some((one) => /\p{Script=Latin}/u.test(one));
      const found = (isLatin ? speller : latin).rules.soundsOf(latinLetters(span));
      for (const sound of found) sounds.push({ ...sound, start: sound.start + from, end: sound.end + from });
    } else {
      const phones = kind === "digit" ? digitSounds(letter, speller) : syllable(letter, kind);
      if (phones.length > 0) sounds.push({ start: at, end, phones });
    }
    at = end;
  }
  return sounds;
}

type LetterKind = "alphabet" | "digit" | "syllable" | "none";

function kindOf(letter: string): LetterKind {
  if (/[\p{Script=Latin}'’]/u.test(letter) || TO_LATIN.has(letter)) return "alphabet";
  if (/\p{Nd}/u.test(letter)) return "digit";
  // Half of a pair: the first half is the character.
  if (/[\p{L}\uD800-\uDBFF]/u.test(letter)) return "syllable";
  return "none";
}

function syllable(letter: string, kind: LetterKind): readonly Phone[] {
  if (kind !== "syllable") return [];
  const code = letter.charCodeAt(0);
  if (code < HANGUL.first || code > HANGUL.last) return SYLLABLE;
  const vowel = Math.floor((code - HANGUL.first) / HANGUL.codas) % HANGUL.vowels;
  return ["D", HANGUL_VOWELS[vowel] ?? "AH"];
}

function digitSounds(digit: string, { rules, digits }: Speller): Phone[] {
  // Each row of ten digits begins at a multiple of 16 in Unicode, or six behind it.
  const code = digit.charCodeAt(0) & 15;
  const name = digits[code >= 6 && digit.charCodeAt(0) > 0x7f ? code - 6 : code] ?? "";
  return rules.soundsOf(name).flatMap(({ phones }) => [...phones]);
}

function latinLetters(letters: readonly string[]): string {
  return letters.map((letter) => TO_LATIN.get(letter) ?? letter.replace("’", "'")).join("");
}

function smallLetter(letter: string): string {
  const small = letter.toLowerCase();
  return small.length === 1 ? small : letter;
}

function pairs(from: string, to: string): Record<string, string> {
  return Object.fromEntries([...from].map((letter, index) => [letter, to.charAt(index)]));
}
