/** `<phoneme alphabet="ipa" ph="...">word</phoneme>` in a text: the word is said with these sounds. */
import { ALPHABETS, readPronunciation } from "./phonemes.ts";
import type { Respelling } from "./pronunciation.ts";

const TAG = /(?<open><phoneme\s(?<attributes>[^<>]{1,400})>)(?<word>[^<>]{1,100})<\/phoneme>/giu;

/**
 * In order. Where the sounds can't be said, there is none: the word is said as it is written, and its tag is one of
 * leftOutTags.
 */
export function findPhonemeTags(text: string): Respelling[] {
  return Array.from(text.matchAll(TAG)).flatMap(({ index, groups = {} }): Respelling[] => {
    const { open = "", attributes = "", word = "" } = groups;
    const alphabet = ALPHABETS.find((known) => known === attributeOf("alphabet", attributes));
    const read =
      alphabet === undefined ? undefined : readPronunciation(attributeOf("ph", attributes), alphabet);
    if (read === undefined || "unknown" in read || word.trim() === "") return [];
    const start = index + open.length;
    return [{ start, end: start + word.length, said: { mnemonics: read.mnemonics } }];
  });
}

function attributeOf(name: string, attributes: string): string {
  for (const { groups = {} } of attributes.matchAll(ATTRIBUTE)) {
    if (groups.name === name) return groups.double ?? groups.single ?? "";
  }
  return "";
}

const ATTRIBUTE =
  /(?<name>[a-z]{1,20})\s{0,9}=\s{0,9}(?:"(?<double>[^"]{0,300})"|'(?<single>[^']{0,300})')/giu;
