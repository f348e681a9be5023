/** The pause between two segments of an utterance, by the punctuation where they meet. */
import type { SeamTuning } from "./ports.ts";

const PARAGRAPH = /\n\s*\n\s*$/;
/** Sentence marks of the larger scripts, with quotes and brackets that close behind them. */
const SENTENCE =
  /(?:[.!?\u2026\u3002\uff01\uff1f\uff0e\u0964\u0965\u061f\u06d4\u104b]|\n)["'\u00bb\u201d\u2019)\]\u300d\u300f*_]*\s*$/u;
const CLAUSE = /[,;:\u060c\u061b\u3001\uff0c\uff1b\uff1a\u2013\u2014-]["'\u00bb\u201d\u2019)\]*_]*\s*$/u;

/** ms that should pass between the last sound of `text` and the first of what follows. */
export function seamPauseMs(text: string, seams: SeamTuning): number {
  const end = text.slice(-16);
  if (PARAGRAPH.test(end)) return seams.pauseParagraphMs;
  if (SENTENCE.test(end)) return seams.pauseSentenceMs;
  return CLAUSE.test(end) ? seams.pauseClauseMs : 0;
}
