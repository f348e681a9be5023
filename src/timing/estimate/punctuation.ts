/** Punctuation in a text at which a voice may pause. */
import { characterWeight } from "./speech-weight.ts";

/** More than that in one span is not matched: time grows with their product with that of the pauses. */
const MAX_PUNCTUATION = 256;

/** Punctuation with the space behind it; offsets in its text, UTF-16. */
export interface Punctuation {
  readonly start: number;
  readonly end: number;
  /** It ends a sentence, and not only a clause. */
  readonly isStop: boolean;
}

/** Punctuation that is followed by space, with the space; wide punctuation needs none. Of a long run only so much is one: linear time. */
const PUNCTUATION =
  /[\p{Terminal_Punctuation}…–—]\p{P}{0,32}(?:\s+|$)|[\u3001\u3002\uff01\uff0c\uff1a\uff1b\uff1f]+\s*|\s[-–—]\s+|\n+/gu;
const SMALL = /^\p{Ll}/u;
const STOP = /[\p{Sentence_Terminal}…\n]/u;

/** Rising, and no more than can be matched. */
export function punctuationOf(text: string): Punctuation[] {
  return [...text.matchAll(PUNCTUATION)].slice(0, MAX_PUNCTUATION).map(({ index, 0: run }) => {
    const end = index + run.length;
    // A stop before a small letter may be an abbreviation's: some voices pause there, others don't.
    const isDoubtful = !run.includes("\n") && SMALL.test(text.slice(end, end + 2));
    return { start: index, end, isStop: STOP.test(run) && !isDoubtful };
  });
}

/** Part of a text whose characters count otherwise than others; offsets in the text, UTF-16. */
export interface WeightedSpan {
  readonly start: number;
  readonly end: number;
  readonly factor: number;
}

/** Weight of the letters of a text before each offset: punctuation takes its time in pauses. */
export function letterWeights(text: string, punctuation: readonly Punctuation[]): Float64Array {
  return weightsBefore(
    text,
    punctuation.map(({ start, end }) => ({ start, end, factor: 0 })),
  );
}

/** Weight of a text before each offset; that of its characters in `spans` (rising) counts so many times. */
export function weightsBefore(text: string, spans: readonly WeightedSpan[]): Float64Array {
  const weights = new Float64Array(text.length + 1);
  let weight = 0;
  let next = 0;
  for (let at = 0; at < text.length; ) {
    const character = String.fromCodePoint(text.codePointAt(at) ?? 0);
    while (at >= (spans[next]?.end ?? Number.POSITIVE_INFINITY)) next += 1;
    const span = spans[next];
    const factor = span !== undefined && at >= span.start ? span.factor : 1;
    weight += characterWeight(character) * factor;
    for (let unit = 0; unit < character.length; unit += 1) weights[++at] = weight;
  }
  return weights;
}
