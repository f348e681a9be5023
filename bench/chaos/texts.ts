/** What callers say, and where its words stand. */
import type { Random } from "../kit/random.ts";

const SENTENCES = [
  "Thank you for waiting so long.",
  "Your parcel left the depot at noon and is on its way to you.",
  "Please have your number at hand.",
  "The driver rings the bell twice, and somebody has to sign for it.",
  "Nobody was there when we came yesterday.",
  "You can move the date until tomorrow evening.",
  "Is there anything else that I can do for you?",
  "We call you back as soon as a desk is free.",
];
const MOST_SENTENCES = 3;

export interface Span {
  readonly start: number;
  readonly end: number;
}

export function someText(random: Random): string {
  const count = 1 + random.below(MOST_SENTENCES);
  const first = random.below(SENTENCES.length);
  return Array.from({ length: count }, (_, index) => SENTENCES[(first + index) % SENTENCES.length]).join(" ");
}

/** As the gateway counts them: between white space, without the punctuation around. */
export function wordsOf(text: string): Span[] {
  return [...text.matchAll(/[\p{L}\p{N}'-]+/gu)].map(({ index, 0: word }) => ({
    start: index,
    end: index + word.length,
  }));
}

/** As a language model sends it: a word with the space behind it, each. */
export function tokensOf(text: string): string[] {
  return text.match(/\S+\s*/g) ?? [];
}
