/** Marks in a text at which a voice may pause. */
import { characterWeight } from "../draft.ts";

/** More than that in one stretch are not matched: time grows with their product with that of the pauses. */
const MAX_MARKS = 256;

/** A mark with the space behind it; offsets in its text, UTF-16. */
export interface Mark {
  readonly start: number;
  readonly end: number;
  /** Of a sentence's end, not of a clause's. */
  readonly isStop: boolean;
  /** A stop before a small letter may be an abbreviation's: some voices pause there, others don't. It counts as a clause's. */
  readonly isDoubtful: boolean;
}

/** A mark that is followed by space, with the space; wide marks need none. Of a long run only so much is one: linear time. */
const MARKS =
  /[\p{Terminal_Punctuation}…–—]\p{P}{0,32}(?:\s+|$)|[\u3001\u3002\uff01\uff0c\uff1a\uff1b\uff1f]+\s*|\s[-–—]\s+|\n+/gu;
const SMALL = /^\p{Ll}/u;
const STOP = /[\p{Sentence_Terminal}…\n]/u;

/** Rising, and no more than can be matched. */
export function marksOf(text: string): Mark[] {
  return [...text.matchAll(MARKS)].slice(0, MAX_MARKS).map(({ index, 0: mark }) => {
    const end = index + mark.length;
    const isEnd = STOP.test(mark);
    const isDoubtful = isEnd && !mark.includes("\n") && SMALL.test(text.slice(end, end + 2));
    return { start: index, end, isStop: isEnd && !isDoubtful, isDoubtful };
  });
}

/** Weight of the letters of a text before each offset: marks take their time in pauses. */
export function letterWeights(text: string, marks: readonly Mark[]): Float64Array {
  return weightsBefore(text, marks, 0);
}

/** Weight of a text before each offset; that of its characters in `stretches` (rising) counts `factor` times. */
export function weightsBefore(
  text: string,
  stretches: readonly Pick<Mark, "start" | "end">[],
  factor: number,
): Float64Array {
  const weights = new Float64Array(text.length + 1);
  let weight = 0;
  let next = 0;
  for (let at = 0; at < text.length; ) {
    const character = String.fromCodePoint(text.codePointAt(at) ?? 0);
    while (at >= (stretches[next]?.end ?? Number.POSITIVE_INFINITY)) next += 1;
    const isInside = at >= (stretches[next]?.start ?? Number.POSITIVE_INFINITY);
    weight += characterWeight(character) * (isInside ? factor : 1);
    for (let unit = 0; unit < character.length; unit += 1) weights[++at] = weight;
  }
  return weights;
}
