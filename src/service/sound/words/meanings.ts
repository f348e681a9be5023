/** Finds the known words of a text, in any of the languages, and what each means to a prompt. */
import { ARABIC } from "./arabic.ts";
import { CHINESE } from "./chinese.ts";
import { ENGLISH } from "./english.ts";
import { SPANISH } from "./spanish.ts";
import {
  type Change,
  type ChangeName,
  changeOf,
  type FamilyName,
  type Language,
  LINKS,
  type Link,
} from "./vocabulary.ts";

/** What a word means to a prompt. */
export type Meaning =
  | SoundWord
  | ChangeWord
  | CountWord
  | { readonly kind: "link"; readonly link: Link }
  /** As it was written. */
  | { readonly kind: "unknown"; readonly word: string };

export interface SoundWord {
  readonly kind: "sound";
  readonly name: FamilyName;
  readonly isRepeated: boolean;
  /** As it was written. */
  readonly word: string;
}

export interface ChangeWord {
  readonly kind: "change";
  readonly change: Change;
  /** As it was written. */
  readonly word: string;
}

export interface CountWord {
  readonly kind: "count";
  readonly count: number;
  /** As it was written. */
  readonly word: string;
}

const LANGUAGES: readonly Language[] = [ENGLISH, SPANISH, ARABIC, CHINESE];
/** Words of the longest phrase, and characters of the longest Chinese word. */
const MAX_PHRASE_WORDS = 3;
const MAX_HAN_CHARACTERS = 5;

/** Words by which an Arabic one may begin; the first letter of some is "and". */
const ARABIC_PREFIXES = ["وال", "بال", "كال", "فال", "ال", "لل", "و", "ب", "ل", "ك", "ف"] as const;
const ARABIC_AND = "و";

const WORDS = wordsOf(LANGUAGES);
const PIECES =
  /(?<han>\p{Script=Han}+)|(?<word>[\p{L}\p{M}\p{N}'’]+)|(?<symbol>\p{So}+)|(?<stop>[,.;:!?&+،؛؟，。、；：！？])/gu;

/** In the order of the text. */
export function meaningsIn(text: string): Meaning[] {
  const found: Meaning[] = [];
  let words: string[] = [];
  const close = () => {
    found.push(...phrases(words));
    words = [];
  };
  for (const { groups = {} } of text.toLowerCase().matchAll(PIECES)) {
    if (groups.word !== undefined) {
      words.push(groups.word);
      continue;
    }
    close();
    if (groups.han !== undefined) found.push(...hanWords(groups.han));
    else if (groups.symbol !== undefined) found.push({ kind: "unknown", word: groups.symbol });
    else found.push({ kind: "link", link: "and" });
  }
  close();
  return found;
}

/** The longest known phrases among words that follow each other. */
function phrases(words: readonly string[]): Meaning[] {
  const found: Meaning[] = [];
  for (let at = 0; at < words.length; ) {
    let count = Math.min(MAX_PHRASE_WORDS, words.length - at);
    let meanings: readonly Meaning[] = [];
    for (; count > 0; count -= 1) {
      meanings = meaningsOf(plain(words.slice(at, at + count).join("_")));
      if (meanings.length > 0) break;
    }
    if (meanings.length === 0) meanings = [{ kind: "unknown", word: words[at] ?? "" }];
    const written = words.slice(at, at + Math.max(1, count)).join(" ");
    for (const meaning of meanings) found.push(asWritten(meaning, written));
    at += Math.max(1, count);
  }
  return found;
}

function asWritten(meaning: Meaning, word: string): Meaning {
  return meaning.kind === "link" ? meaning : { ...meaning, word };
}

/** Chinese has no spaces: the longest known word at each place; what lies between is unknown. */
function hanWords(text: string): Meaning[] {
  const characters = [...text];
  const found: Meaning[] = [];
  let unknown = "";
  const close = () => {
    if (unknown !== "") found.push({ kind: "unknown", word: unknown });
    unknown = "";
  };
  for (let at = 0; at < characters.length; ) {
    let count = Math.min(MAX_HAN_CHARACTERS, characters.length - at);
    let meaning: Meaning | undefined;
    for (; count > 0 && meaning === undefined; count -= 1) {
      meaning = WORDS.get(characters.slice(at, at + count).join(""));
      if (meaning !== undefined) break;
    }
    if (meaning === undefined) unknown += characters[at] ?? "";
    else {
      close();
      found.push(asWritten(meaning, characters.slice(at, at + count).join("")));
    }
    at += Math.max(1, count);
  }
  close();
  return found;
}

/** None for a word, or a phrase, that is not known. */
function meaningsOf(word: string): readonly Meaning[] {
  if (/^\d{1,3}$/.test(word)) return [{ kind: "count", count: Number(word), word }];
  if (/\p{Script=Arabic}/u.test(word)) return arabicMeanings(word);
  for (const stem of stems(word)) {
    const meaning = WORDS.get(stem);
    if (meaning === undefined) continue;
    const isRepeated = stem !== word && /(?:s|ing)$/.test(word);
    return [meaning.kind === "sound" ? { ...meaning, isRepeated } : meaning];
  }
  return [];
}

function arabicMeanings(word: string): readonly Meaning[] {
  for (const prefix of ["", ...ARABIC_PREFIXES]) {
    if (!word.startsWith(prefix)) continue;
    const bare = word.slice(prefix.length);
    const meaning = WORDS.get(bare) ?? WORDS.get(bare.replace(/(?:ات|ين|ون|ه|ة)$/, ""));
    if (meaning === undefined) continue;
    return prefix.startsWith(ARABIC_AND) ? [{ kind: "link", link: "and" }, meaning] : [meaning];
  }
  return [];
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

/** Without accents, which many do not write. */
function plain(word: string): string {
  return word.normalize("NFKD").replace(/[\p{M}'’ـ]/gu, "");
}

/** The first language and meaning that has a word keeps it. */
function wordsOf(languages: readonly Language[]): ReadonlyMap<string, Meaning> {
  const words = new Map<string, Meaning>();
  const add = (list: string, meaning: Meaning) => {
    for (const word of list.split(" ")) if (!words.has(plain(word))) words.set(plain(word), meaning);
  };
  for (const { sounds, changes, links, numbers, times } of languages) {
    for (const [at, alternatives] of numbers.split(" ").entries()) {
      add(alternatives.replaceAll("|", " "), { kind: "count", count: at + 1, word: alternatives });
    }
    for (const [word, count] of Object.entries(times)) add(word, { kind: "count", count, word });
    for (const name of Object.keys(changes) as ChangeName[]) {
      add(changes[name], { kind: "change", change: changeOf(name), word: name });
    }
    for (const name of Object.keys(sounds) as FamilyName[]) {
      add(sounds[name], { kind: "sound", name, isRepeated: false, word: name });
    }
    for (const link of LINKS) add(links[link], { kind: "link", link });
  }
  return words;
}
