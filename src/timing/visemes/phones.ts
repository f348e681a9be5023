/**
 * The sounds that mouth shapes are made of: ARPABET's, and three more for the languages beside English. Also reads
 * them out of the `ph` of SSML's `<phoneme>` (SSML 1.1, section 3.1.10), in IPA or CMU Arpabet.
 */

/** ARPABET, with AX (schwa), UE (front rounded, "ü"), OE (front rounded, "ö") and X (as in "loch"). */
export type Phone = keyof typeof PHONES;

interface PhoneShape {
  /** One of the 15 of Oculus Lipsync. */
  readonly oculus: OculusViseme;
  /** One of the 22 of Microsoft's speech service, 0 to 21. */
  readonly microsoft: number;
  readonly isVowel: boolean;
}

export const OCULUS_VISEMES = [
  "sil",
  "PP",
  "FF",
  "TH",
  "DD",
  "kk",
  "CH",
  "SS",
  "nn",
  "RR",
  "aa",
  "E",
  "ih",
  "oh",
  "ou",
] as const;
export type OculusViseme = (typeof OCULUS_VISEMES)[number];

const vowel = (oculus: OculusViseme, microsoft: number): PhoneShape => ({
  oculus,
  microsoft,
  isVowel: true,
});
const consonant = (oculus: OculusViseme, microsoft: number): PhoneShape => ({
  oculus,
  microsoft,
  isVowel: false,
});

export const PHONES = {
  AA: vowel("aa", 2),
  AE: vowel("aa", 1),
  AH: vowel("aa", 1),
  AX: vowel("E", 1),
  AO: vowel("oh", 3),
  AW: vowel("aa", 9),
  AY: vowel("aa", 11),
  EH: vowel("E", 4),
  ER: vowel("E", 5),
  EY: vowel("E", 4),
  IH: vowel("ih", 6),
  IY: vowel("ih", 6),
  OW: vowel("oh", 8),
  OY: vowel("oh", 10),
  UH: vowel("ou", 4),
  UW: vowel("ou", 7),
  UE: vowel("ou", 7),
  OE: vowel("oh", 8),
  P: consonant("PP", 21),
  B: consonant("PP", 21),
  M: consonant("PP", 21),
  F: consonant("FF", 18),
  V: consonant("FF", 18),
  TH: consonant("TH", 19),
  DH: consonant("TH", 17),
  T: consonant("DD", 19),
  D: consonant("DD", 19),
  N: consonant("nn", 19),
  L: consonant("nn", 14),
  K: consonant("kk", 20),
  G: consonant("kk", 20),
  NG: consonant("kk", 20),
  X: consonant("kk", 20),
  HH: consonant("kk", 12),
  CH: consonant("CH", 16),
  JH: consonant("CH", 16),
  SH: consonant("CH", 16),
  ZH: consonant("CH", 16),
  S: consonant("SS", 15),
  Z: consonant("SS", 15),
  R: consonant("RR", 13),
  W: consonant("ou", 7),
  Y: consonant("ih", 6),
} as const satisfies Record<string, PhoneShape>;

/** Symbols of the IPA, longest first where one begins another; what is not here (stress, length, tone) has no shape. */
const IPA: readonly (readonly [symbols: string, phone: Phone])[] = [
  ["tʃ dʒ ʧ ʤ tɕ dʑ", "CH"],
  ["aɪ ai", "AY"],
  ["aʊ au", "AW"],
  ["ɔɪ ɔʏ ɔy oɪ", "OY"],
  ["eɪ ei", "EY"],
  ["oʊ əʊ ou", "OW"],
  ["p", "P"],
  ["b β", "B"],
  ["m ɱ", "M"],
  ["f ɸ", "F"],
  ["v ʋ", "V"],
  ["θ", "TH"],
  ["ð", "DH"],
  ["t ʈ", "T"],
  ["d ɖ", "D"],
  ["n ɲ ɳ", "N"],
  ["l ɫ ʎ ɭ", "L"],
  ["k c q", "K"],
  ["ɡ g ɟ ɢ", "G"],
  ["ŋ ɴ", "NG"],
  ["x ɣ χ", "X"],
  ["h ɦ ħ", "HH"],
  ["ʃ ɕ ç ʂ", "SH"],
  ["ʒ ʑ ʐ ʝ", "ZH"],
  ["s", "S"],
  ["z", "Z"],
  ["ɹ r ɾ ʁ ʀ ɻ", "R"],
  ["w ʍ ɥ", "W"],
  ["j", "Y"],
  ["i ɪ ɨ", "IY"],
  ["e ɛ", "EH"],
  ["æ", "AE"],
  ["ɑ a ɒ ɐ", "AA"],
  ["ʌ", "AH"],
  ["ə", "AX"],
  ["ɝ ɜ ɚ", "ER"],
  ["ɔ", "AO"],
  ["o ɤ", "OW"],
  ["u ɯ", "UW"],
  ["ʊ", "UH"],
  ["y ʏ", "UE"],
  ["ø œ ɵ", "OE"],
];
const IPA_PHONES: ReadonlyMap<string, Phone> = new Map(
  IPA.flatMap(([symbols, phone]) => symbols.split(" ").map((symbol) => [symbol, phone] as const)),
);

export function isPhone(name: string): name is Phone {
  return Object.hasOwn(PHONES, name);
}

/** The sounds of an IPA transcription. */
export function phonesOfIpa(ipa: string): Phone[] {
  const phones: Phone[] = [];
  for (let at = 0; at < ipa.length; at += 1) {
    // A tie bar joins two symbols into one sound.
    const pair = ipa
      .slice(at, at + 3)
      .replace(/[͜͡]/u, "")
      .slice(0, 2);
    const two = pair.length === 2 ? IPA_PHONES.get(pair) : undefined;
    const phone = two ?? IPA_PHONES.get(ipa.charAt(at));
    if (two !== undefined) at += /[͜͡]/u.test(ipa.charAt(at + 1)) ? 2 : 1;
    if (phone !== undefined) phones.push(phone);
  }
  return phones;
}

/** The sounds of a CMU Arpabet transcription ("M AE1 D IH0 S AH0 N"); digits are stress. */
export function phonesOfArpabet(text: string): Phone[] {
  return text
    .toUpperCase()
    .split(/\s+/)
    .map((name) => name.replace(/\d$/, ""))
    .map((name) => (name === "AXR" ? "ER" : name))
    .filter(isPhone);
}
