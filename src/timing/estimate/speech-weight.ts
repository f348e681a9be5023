/** How long a text takes to say, against other texts: for want of anything better. */

/** Speech of this length says how fast the voice speaks; before, it is taken to speak as most do. */
export const MIN_RATE_SECONDS = 0.5;
/** How much text most voices say: a letter weighs 1, so as many characters of an alphabet, and about six of Chinese. */
export const TYPICAL_WEIGHT_A_SECOND = 15;

export function speechWeight(text: string): number {
  let weight = 0;
  for (const character of text) weight += characterWeight(character);
  return weight;
}

/** Roughly the share of phonemes: a Chinese character is a syllable, a digit a word, a stop a pause. */
export function characterWeight(character: string): number {
  if (/\p{Ll}|\p{Lu}/u.test(character)) return 1;
  if (/\p{N}|\p{So}/u.test(character)) return 3;
  if (/[\p{scx=Han}\p{sc=Hangul}\p{scx=Hira}\p{scx=Kana}]/u.test(character) && /\p{L}/u.test(character))
    return 2.5;
  if (/\p{L}/u.test(character)) return 1;
  if (/\p{Sentence_Terminal}/u.test(character)) return 4;
  if (/[\p{Terminal_Punctuation}\p{Pd}…]/u.test(character)) return 2;
  return 0.5;
}
