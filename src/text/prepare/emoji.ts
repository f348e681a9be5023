/** Emoji as people see them: sequences, flags, keycaps and skin tones are one (UTS #51, ED-17 and its parts). */
import { atEnd, NO_MATCH, skip, type View } from "./match.ts";

/** Units of a run of emoji that are looked at together. */
const MAX_RUN = 128;

// Signs that are words to a reader: they stay even with an emoji selector.
const SIGN = "[\\u00a9\\u00ae\\u2122]";
const TAGS = "[\\u{e0020}-\\u{e007e}]{1,16}\\u{e007f}";
// Below U+1F000 pictures are text unless a selector or a skin tone says otherwise: arrows, hearts, suns.
const PICTURE =
  "(?:\\p{Emoji_Presentation}|\\p{Extended_Pictographic}(?=\\ufe0f)|(?=[\\u{1f000}-\\u{1faff}])\\p{Extended_Pictographic}|\\p{Emoji_Modifier_Base}(?=\\p{Emoji_Modifier})|\\p{Extended_Pictographic}(?=\\u200d\\p{Extended_Pictographic}))";
const ELEMENT = `(?!${SIGN})${PICTURE}(?!\\ufe0e)(?:\\p{Emoji_Modifier}|\\ufe0f)?(?:${TAGS})?`;
const JOINED = "\\u200d\\p{Extended_Pictographic}(?:\\p{Emoji_Modifier}|\\ufe0f)?";
const KEYCAP = "[0-9#*]\\ufe0f?\\u20e3";
const ONE = `(?:\\p{RI}\\p{RI}?|${KEYCAP}|${ELEMENT}(?:${JOINED}){0,15})\\u200d?`;

const EMOJI = new RegExp(ONE, "uy");
const SPACES = /[ \t]{0,64}/y;
/** A character that may be, or turn into, an emoji once more is known. */
const OPEN =
  /^(?:[0-9#*]\ufe0f?|\p{Extended_Pictographic}(?:\p{Emoji_Modifier}|\ufe0f)?\u200d?|[\u{e0020}-\u{e007e}]{1,16})$/u;
const MAX_OPEN = 34;

/** As the start of a search: the space before an emoji belongs to it. */
export const EMOJI_START = "[ \\t]?(?:\\p{Extended_Pictographic}|\\p{RI}|[0-9#*]\\ufe0f?\\u20e3)";

/** Where what may be the start of an emoji starts at the end of `text`, with the space before it; else its length. */
export function openEmojiStart(text: string): number {
  const { length } = text;
  const last = text.charCodeAt(length - 1);
  if (isBlank(last)) return length - 1;
  const base = last === SELECTOR ? length - 2 : length - 1;
  if (!isKeycapBase(text.charCodeAt(base))) return length;
  return isBlank(text.charCodeAt(base - 1)) ? base - 1 : base;
}

const SELECTOR = 0xfe0f;

function isBlank(unit: number): boolean {
  return unit === 0x20 || unit === 0x09;
}

/** 0-9 # * */
function isKeycapBase(unit: number): boolean {
  return (unit >= 0x30 && unit <= 0x39) || unit === 0x23 || unit === 0x2a;
}

interface EmojiRun {
  /** Behind the white space at its start. */
  readonly start: number;
  /** Behind the last emoji and the white space that follows it. */
  readonly end: number;
  readonly hasSpaceBehind: boolean;
}

/** The run of emoji at `at`, with one space before it at most; white space between them and behind them is part of it. */
export function emojiRunAt(view: View, at: number): EmojiRun | number {
  const { text } = view;
  const isSpace = text[at] === " " || text[at] === "\t";
  const start = isSpace ? at + 1 : at;
  let last = start;
  let end = start;
  while (end - start < MAX_RUN) {
    const next = skip(EMOJI, text, end);
    if (next === end) break;
    last = next;
    end = skip(SPACES, text, next);
  }
  if (!view.isFinal && (end >= text.length || isOpenAtEnd(text, end))) return atEnd(view);
  return last === start ? NO_MATCH : { start, end, hasSpaceBehind: end > last };
}

function isOpenAtEnd(text: string, at: number): boolean {
  return text.length - at <= MAX_OPEN && OPEN.test(text.slice(at));
}
