/** What a character is to the rules of this folder: one small class per code point, from Unicode properties. */

export const KIND = {
  /** A space where a line may break; U+200B too (Thai and Khmer separate words with it). */
  space: 0,
  newline: 1,
  /** No-break spaces. */
  glue: 2,
  /** Invisible format characters: direction marks, soft hyphen, word joiner. */
  format: 3,
  /** Continues the grapheme before it: marks, variation selectors, joiners, skin tones. */
  extend: 4,
  lower: 5,
  upper: 6,
  /** A letter without case, of a script that puts spaces between words. */
  letter: 7,
  digit: 8,
  /** A letter of a script without spaces between words: Chinese, Japanese, Thai, Lao, Khmer, Burmese. */
  unspaced: 9,
  emoji: 10,
  dot: 11,
  /** ! and ?: they end a sentence where a space follows. */
  stop: 12,
  /** Ends a sentence without a space behind it: 。！？ danda, Arabic question mark and their like. */
  wideStop: 13,
  /** , ; : where a space follows. */
  clause: 14,
  /** Ends a clause without a space behind it: ，、； and their like. */
  wideClause: 15,
  /** Em dash and longer. */
  dash: 16,
  ellipsis: 17,
  open: 18,
  close: 19,
  /** Opens in some languages and closes in others (category Pi). */
  openQuote: 20,
  /** " and ': either side. */
  quote: 21,
  /** * _ ~ ` #: emphasis around words in Markdown. */
  emphasis: 22,
  punctuation: 23,
  symbol: 24,
} as const;
export type Kind = (typeof KIND)[keyof typeof KIND];

const EXTEND = /[\p{M}\p{Grapheme_Extend}\p{Emoji_Modifier}\u0e33\u0eb3]|\u200d/u;
const UNSPACED =
  /[\p{scx=Han}\p{scx=Hira}\p{scx=Kana}\p{scx=Bopo}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmer}\p{sc=Mymr}]/u;
const LETTER_OR_NUMBER = /[\p{L}\p{N}]/u;
const LOWER = /\p{Ll}/u;
const UPPER = /[\p{Lu}\p{Lt}]/u;
const LETTER = /\p{L}/u;
const NUMBER = /\p{N}/u;
const SPACE = /\s/u;
const FORMAT = /[\p{Cf}\p{Cc}]/u;
/** Signs that are written before digits and make one grapheme with them (U+0600 ARABIC NUMBER SIGN and its like). */
const PREPENDED = /[\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\u{110bd}\u{110cd}]/u;
const EMOJI = /[\p{Emoji_Presentation}\p{RI}]/u;
const PICTURE = /\p{Extended_Pictographic}/u;
const STOP = /\p{Sentence_Terminal}/u;
const TERMINAL = /\p{Terminal_Punctuation}/u;
const OPEN = /\p{Ps}/u;
const OPEN_QUOTE = /\p{Pi}/u;
const CLOSE = /[\p{Pe}\p{Pf}]/u;
const PUNCTUATION = /\p{P}/u;

const UNKNOWN = 0xff;
/** Kinds of the code points up to U+FFFF that were asked for so far: the properties are too slow for every character. */
const KINDS = new Uint8Array(0x10000).fill(UNKNOWN);

/** The class of a code point. */
export function kindOf(codePoint: number): Kind {
  if (codePoint > 0xffff) return kindByProperty(codePoint, String.fromCodePoint(codePoint));
  const known = KINDS[codePoint] ?? UNKNOWN;
  return known === UNKNOWN ? learnKind(codePoint) : (known as Kind);
}

function learnKind(codePoint: number): Kind {
  const character = String.fromCodePoint(codePoint);
  const kind = codePoint < 0x80 ? kindOfAscii(character) : kindByProperty(codePoint, character);
  KINDS[codePoint] = kind;
  return kind;
}

function kindByProperty(codePoint: number, character: string): Kind {
  if (EXTEND.test(character)) return KIND.extend;
  if (LETTER_OR_NUMBER.test(character)) return kindOfWordCharacter(character);
  if (PUNCTUATION.test(character)) return kindOfPunctuation(codePoint, character);
  if (SPACE.test(character)) return kindOfSpace(codePoint);
  if (codePoint === 0x200b) return KIND.space;
  if (codePoint === 0x85) return KIND.newline;
  if (FORMAT.test(character)) return PREPENDED.test(character) ? KIND.letter : KIND.format;
  // Below U+1F000 pictures are text unless a selector says otherwise: (c), (r), arrows, hearts, suns.
  if (EMOJI.test(character) || (codePoint >= 0x1f000 && PICTURE.test(character))) return KIND.emoji;
  return KIND.symbol;
}

function kindOfWordCharacter(character: string): Kind {
  if (UNSPACED.test(character)) return KIND.unspaced;
  if (LOWER.test(character)) return KIND.lower;
  if (UPPER.test(character)) return KIND.upper;
  return LETTER.test(character) ? KIND.letter : KIND.digit;
}

function kindOfPunctuation(codePoint: number, character: string): Kind {
  if (codePoint === 0x2026) return KIND.ellipsis;
  if (codePoint === 0x2014 || codePoint === 0x2015 || codePoint === 0x2e3a || codePoint === 0x2e3b)
    return KIND.dash;
  if (STOP.test(character)) return KIND.wideStop;
  if (TERMINAL.test(character)) return KIND.wideClause;
  if (OPEN.test(character)) return KIND.open;
  if (OPEN_QUOTE.test(character)) return KIND.openQuote;
  if (CLOSE.test(character)) return KIND.close;
  return KIND.punctuation;
}

function kindOfSpace(codePoint: number): Kind {
  if (codePoint === 0x2028 || codePoint === 0x2029) return KIND.newline;
  // U+FEFF is white space to JavaScript; like the no-break spaces it keeps its neighbours together.
  return codePoint === 0xa0 || codePoint === 0x202f || codePoint === 0x2007 || codePoint === 0xfeff
    ? KIND.glue
    : KIND.space;
}

function kindOfAscii(character: string): Kind {
  if (character === "\n") return KIND.newline;
  if (SPACE.test(character)) return KIND.space;
  if (LOWER.test(character)) return KIND.lower;
  if (UPPER.test(character)) return KIND.upper;
  if (NUMBER.test(character)) return KIND.digit;
  if (FORMAT.test(character)) return KIND.format;
  if (character === ".") return KIND.dot;
  if ("!?".includes(character)) return KIND.stop;
  if (",;:".includes(character)) return KIND.clause;
  if ("([{".includes(character)) return KIND.open;
  if (")]}".includes(character)) return KIND.close;
  if ("\"'".includes(character)) return KIND.quote;
  if ("*_~`#".includes(character)) return KIND.emphasis;
  return PUNCTUATION.test(character) ? KIND.punctuation : KIND.symbol;
}

/** Whether the character is one of those that a voice says: letters, digits, emoji. */
export function isSpoken(kind: Kind): boolean {
  return kind >= KIND.lower && kind <= KIND.emoji;
}

/** Whether a letter or a digit, of any script. */
export function isWordKind(kind: Kind): boolean {
  return kind >= KIND.lower && kind <= KIND.unspaced;
}

/** Two regional indicators are a flag. */
export function isFlagHalf(codePoint: number): boolean {
  return codePoint >= 0x1f1e6 && codePoint <= 0x1f1ff;
}

/** UTF-16 code units of a code point. */
export function unitsOf(codePoint: number): 1 | 2 {
  return codePoint > 0xffff ? 2 : 1;
}

/** Whether the text shows nothing: white space and invisible characters only. */
export function isBlank(text: string): boolean {
  return !/[^\s\p{Cf}\p{Cc}]/u.test(text);
}
