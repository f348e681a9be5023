/** Times of characters, as services list them: those of each word share its time, and a space stands behind it. */
import type { Spoken } from "./spoken.ts";

export interface CharacterTime {
  readonly character: string;
  readonly start: number;
  readonly end: number;
}

export function characterTimes(words: Spoken["words"]): CharacterTime[] {
  return words.flatMap(({ text, start, end }) => {
    const share = (end - start) / text.length;
    const own = [...text].map((character, index) => ({
      character,
      start: start + index * share,
      end: index === text.length - 1 ? end : start + (index + 1) * share,
    }));
    return [...own, { character: " ", start: end, end }];
  });
}
