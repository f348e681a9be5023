/** Words as most services list them: three lists of one length. */
import { listOf, numberOf, textOf } from "./json-values.ts";
import type { ServiceWord } from "./word-matcher.ts";

/** Seconds. Where a list is short or holds something else a word has no time. */
export function timedWords(words: unknown, starts: unknown, ends: unknown): ServiceWord[] {
  const [startList, endList] = [listOf(starts), listOf(ends)];
  return listOf(words).map((word, index) => ({
    text: textOf(word),
    startSeconds: numberOf(startList[index]),
    endSeconds: numberOf(endList[index]),
  }));
}
