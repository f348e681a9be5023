/** Which of the engine's voices speaks a language, by ISO 639-1 code; and which language a foreign script stands for. */

interface Language {
  /** The engine's voice name. */
  readonly engine: string;
  readonly name: string;
}

const ENGLISH_NAMES: Readonly<Record<string, string>> = {
  af: "Afrikaans",
  am: "Amharic",
  an: "Aragonese",
  ar: "Arabic",
  as: "Assamese",
  az: "Azerbaijani",
  ba: "Bashkir",
  be: "Belarusian",
  bg: "Bulgarian",
  bn: "Bengali",
  bs: "Bosnian",
  ca: "Catalan",
  cs: "Czech",
  cv: "Chuvash",
  cy: "Welsh",
  da: "Danish",
  de: "German",
  el: "Greek",
  en: "English",
  eo: "Esperanto",
  es: "Spanish",
  et: "Estonian",
  eu: "Basque",
  fa: "Persian",
  fi: "Finnish",
  fo: "Faroese",
  fr: "French",
  ga: "Irish",
  gd: "Scottish Gaelic",
  gn: "Guarani",
  gu: "Gujarati",
  he: "Hebrew",
  hi: "Hindi",
  hr: "Croatian",
  ht: "Haitian Creole",
  hu: "Hungarian",
  hy: "Armenian",
  ia: "Interlingua",
  id: "Indonesian",
  io: "Ido",
  is: "Icelandic",
  it: "Italian",
  ja: "Japanese",
  ka: "Georgian",
  kk: "Kazakh",
  kl: "Greenlandic",
  kn: "Kannada",
  ko: "Korean",
  ku: "Kurdish",
  ky: "Kyrgyz",
  la: "Latin",
  lb: "Luxembourgish",
  lt: "Lithuanian",
  lv: "Latvian",
  mi: "Maori",
  mk: "Macedonian",
  ml: "Malayalam",
  mr: "Marathi",
  ms: "Malay",
  mt: "Maltese",
  my: "Burmese",
  ne: "Nepali",
  nl: "Dutch",
  no: "Norwegian",
  om: "Oromo",
  or: "Odia",
  pa: "Punjabi",
  pl: "Polish",
  pt: "Portuguese",
  qu: "Quechua",
  ro: "Romanian",
  ru: "Russian",
  sd: "Sindhi",
  si: "Sinhala",
  sk: "Slovak",
  sl: "Slovenian",
  sq: "Albanian",
  sr: "Serbian",
  sv: "Swedish",
  sw: "Swahili",
  ta: "Tamil",
  te: "Telugu",
  th: "Thai",
  ti: "Tigrinya",
  tk: "Turkmen",
  tn: "Setswana",
  tr: "Turkish",
  tt: "Tatar",
  ug: "Uyghur",
  uk: "Ukrainian",
  ur: "Urdu",
  uz: "Uzbek",
  vi: "Vietnamese",
  zh: "Chinese",
};

/** Codes whose engine voice is called otherwise. */
const ENGINE_NAMES: Readonly<Record<string, string>> = {
  en: "en-us",
  no: "nb",
  pt: "pt-br",
  zh: "cmn",
};

/** Engine voices whose table of phonemes is called otherwise. */
const PHONEME_TABLES: Readonly<Record<string, string>> = {
  bs: "hr",
  "es-419": "es-la",
  io: "eo",
  nb: "no",
  "pt-br": "pt",
};

/** English phonemes in text for an engine voice. The accents of English have them; elsewhere its table is changed and changed back. */
export function englishPhonemes(mnemonics: string, engineVoice: string): string {
  if (/^en(?:-|$)/.test(engineVoice)) return `[[${mnemonics}]]`;
  return `[[_^_en-us ${mnemonics} _^_${PHONEME_TABLES[engineVoice] ?? engineVoice}]]`;
}

/** Other names of the same languages that clients send. */
const ALIASES: Readonly<Record<string, string>> = {
  cmn: "zh",
  nb: "no",
  iw: "he",
  in: "id",
};

/** Engine voices of regions (ISO 3166-1 or UN M49), beside that of the region that a language is most spoken in. */
const ACCENTS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  en: { GB: "en", "029": "en-029" },
  es: { "419": "es-419", MX: "es-419" },
  fr: { BE: "fr-be", CH: "fr-ch" },
  pt: { PT: "pt" },
};

/** What a text is spoken in. */
export interface SpokenLanguage {
  /** ISO 639-1. */
  readonly code: string;
  /** The engine's voice of the region that was named; null where none was. */
  readonly accent: string | null;
}

const CODE = /^(?<base>[a-z]{2,3})(?:[-_](?<region>[a-z]{2}|\d{3}))?$/i;

/** The language of a code such as `de`, `de-DE` or `pt_PT`; undefined where the engine lacks the language or the region's accent. */
export function findLanguage(code: string): (Language & SpokenLanguage) | undefined {
  const { base = "", region } = CODE.exec(code)?.groups ?? {};
  const lower = base.toLowerCase();
  const known = ALIASES[lower] ?? lower;
  const name = Object.hasOwn(ENGLISH_NAMES, known) ? ENGLISH_NAMES[known] : undefined;
  if (name === undefined) return undefined;
  const engine = ENGINE_NAMES[known] ?? known;
  if (region === undefined) return { code: known, name, engine, accent: null };
  const accent = accentOf(known, region.toUpperCase(), engine);
  return accent === undefined ? undefined : { code: known, name, engine, accent };
}

function accentOf(code: string, region: string, usual: string): string | undefined {
  if (new Intl.Locale(code).maximize().region === region) return usual;
  return ACCENTS[code]?.[region];
}

/** Every language that the engine speaks by code, for GET /v1/models. */
export const LISTED_LANGUAGES: readonly { readonly language_id: string; readonly name: string }[] =
  Object.entries(ENGLISH_NAMES).map(([language_id, name]) => ({ language_id, name }));

/** Scripts that one language can stand for, and the languages that are written in them. */
const SCRIPTS: readonly {
  readonly letters: RegExp;
  readonly language: string;
  readonly alsoIn: readonly string[];
}[] = [
  { letters: /[\p{Script=Hiragana}\p{Script=Katakana}]/gu, language: "ja", alsoIn: [] },
  { letters: /\p{Script=Hangul}/gu, language: "ko", alsoIn: [] },
  { letters: /\p{Script=Han}/gu, language: "zh", alsoIn: ["ja"] },
  { letters: /\p{Script=Thai}/gu, language: "th", alsoIn: [] },
  { letters: /\p{Script=Arabic}/gu, language: "ar", alsoIn: ["fa", "ur", "ug", "sd", "ku"] },
  { letters: /\p{Script=Hebrew}/gu, language: "he", alsoIn: [] },
  {
    letters: /\p{Script=Cyrillic}/gu,
    language: "ru",
    alsoIn: ["uk", "bg", "be", "sr", "mk", "kk", "ky", "tt", "ba", "cv", "tk", "uz"],
  },
  { letters: /\p{Script=Greek}/gu, language: "el", alsoIn: [] },
  { letters: /\p{Script=Devanagari}/gu, language: "hi", alsoIn: ["mr", "ne"] },
  { letters: /\p{Script=Bengali}/gu, language: "bn", alsoIn: ["as"] },
  { letters: /\p{Script=Tamil}/gu, language: "ta", alsoIn: [] },
  { letters: /\p{Script=Telugu}/gu, language: "te", alsoIn: [] },
  { letters: /\p{Script=Georgian}/gu, language: "ka", alsoIn: [] },
  { letters: /\p{Script=Armenian}/gu, language: "hy", alsoIn: [] },
];
const LATIN = /\p{Script=Latin}/gu;

/**
 * The language to speak `text` in where `language` is not written in its script: an English voice would otherwise spell
 * Japanese letter by letter. Text mostly in the language's own script, or in none, keeps `language`.
 */
export function languageForScript(text: string, language: string): string {
  let best = { language, count: text.match(LATIN)?.length ?? 0 };
  for (const script of SCRIPTS) {
    const count = text.match(script.letters)?.length ?? 0;
    if (count === 0) continue;
    // A few kana decide that the Han around them is Japanese.
    if (script.language === "ja" && count > best.count / 2) return language === "ja" ? language : "ja";
    if (count <= best.count) continue;
    const isWrittenSo = script.language === language || script.alsoIn.includes(language);
    best = { language: isWrittenSo ? language : script.language, count };
  }
  return best.language;
}

/** Scripts without spaces: words may be cut before any anchored character. */
export const UNSPACED =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]/u;
