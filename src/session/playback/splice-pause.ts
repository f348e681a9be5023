/** The pause between two segments of an utterance, by the punctuation where they meet. */
import type { SpliceTuning } from "../ports.ts";

/** What may stand behind the mark, UTF-16 units: longer tails are rare and not looked at whole. */
const MAX_TAIL = 256;
/** White space, brackets and quotes that close, emphasis, pictures and elements' closing tags: they hide no mark. */
const TAIL =
  /(?:[\s\p{Pe}\p{Pf}\p{Pi}\p{Quotation_Mark}*_]|<\/[a-z][a-z0-9:._-]*\s*>|\p{Extended_Pictographic}|\p{RI}|\p{Emoji_Modifier}|[\u{e0020}-\u{e007f}]|\u200d|\ufe0f|[0-9#*]\ufe0f?\u20e3)+$/iu;
/** Sentence marks of the larger scripts. */
const SENTENCE = /[.!?\u2026\u3002\uff01\uff1f\uff0e\uff61\u0964\u0965\u061f\u06d4\u104b]$/u;
const CLAUSE = /[,;:\u060c\u061b\u3001\uff0c\uff1b\uff1a\u2013\u2014-]$/u;

/** ms that should pass between the last sound of `text` and the first of what follows. */
export function splicePauseMs(text: string, splices: SpliceTuning): number {
  const end = text.slice(-MAX_TAIL);
  const blank = end.slice(end.trimEnd().length);
  if (blank.indexOf("\n") !== blank.lastIndexOf("\n")) return splices.pauseParagraphMs;
  const [tail = ""] = TAIL.exec(end) ?? [];
  const said = end.slice(0, end.length - tail.length);
  if (SENTENCE.test(said) || tail.includes("\n")) return splices.pauseSentenceMs;
  return CLAUSE.test(said) ? splices.pauseClauseMs : 0;
}
