/**
 * Text as a terminal shows it: how many columns it takes (wide East Asian characters and emoji take two, combining
 * marks none), where lines break, and what must never reach a terminal.
 */

/** A line of a wrapped text: UTF-16 offsets, `end` exclusive and without the line's trailing space. */
export interface Line {
  readonly start: number;
  readonly end: number;
}

// Unicode UAX #11 classes W and F by script and block; good for every character people speak.
const WIDE =
  /^[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Bopomofo}\u3000-\u303e\u30fb\u30fc\uff01-\uff60\uffe0-\uffe6]/u;
const EMOJI = /^\p{Emoji_Presentation}|\ufe0f|^\p{RI}\p{RI}/u;
const ZERO = /^[\p{Mark}\p{Format}]+$/u;
// What Japanese and Chinese text never begins a line with (kinsoku).
const NEVER_FIRST = /^[、。，．・：；？！ー…」』）〕】〉》]/u;
// C0, DEL and C1: an escape sequence in someone else's text must not steer our terminal.
const CONTROLS = /[\p{Cc}]/gu;
// U+202A-202E and U+2066-2069 turn the reading direction of everything behind them.
const DIRECTION_CONTROLS = /[\u202a-\u202e\u2066-\u2069]/g;

/** Columns that one grapheme takes: 0, 1 or 2. Half-width kana are in their script's class but take one. */
function graphemeColumns(grapheme: string): number {
  if (grapheme >= "\uff61" && grapheme <= "\uff9f") return 1;
  if (ZERO.test(grapheme)) return 0;
  return WIDE.test(grapheme) || EMOJI.test(grapheme) ? 2 : 1;
}

/** Columns that `text` takes on one line. */
export function textColumns(text: string): number {
  let columns = 0;
  for (const { segment } of graphemes(text)) columns += graphemeColumns(segment);
  return columns;
}

/** `text` with control characters (but newline) as spaces: same length, so offsets stay valid. */
export function safeText(text: string): string {
  return text
    .replace(CONTROLS, (control) => (control === "\n" ? "\n" : " "))
    .replace(DIRECTION_CONTROLS, " ");
}

/**
 * Lines of at most `columns` columns from offset `from` on. Breaks at spaces, between wide characters, and inside a
 * word only where it is longer than a line. Lazy: who needs three lines of a long text pays for three.
 */
export function* wrapLines(text: string, columns: number, from = 0): Generator<Line> {
  const width = Math.max(columns, 2);
  let start = from;
  let used = 0;
  // Where the line may end, and where the next one begins then; undefined until a break was seen.
  let lastBreak: { end: number; next: number; used: number } | undefined;
  for (const { segment, index } of graphemes(text.slice(from))) {
    const offset = from + index;
    if (segment === "\n" || segment === "\r\n") {
      yield { start, end: offset };
      start = offset + segment.length;
      used = 0;
      lastBreak = undefined;
      continue;
    }
    const taken = graphemeColumns(segment);
    if (segment === " ") {
      used += taken;
      lastBreak = { end: offset, next: offset + 1, used };
      continue;
    }
    if (taken === 2 && used > 0 && !NEVER_FIRST.test(segment))
      lastBreak = { end: trimmedEnd(text, start, offset), next: offset, used };
    if (used + taken > width && offset > start) {
      const at = lastBreak ?? { end: offset, next: offset, used };
      yield { start, end: at.end };
      start = at.next;
      used -= at.used;
      lastBreak = undefined;
    }
    used += taken;
  }
  if (start < text.length) yield { start, end: text.length };
}

function trimmedEnd(text: string, start: number, end: number): number {
  let at = end;
  while (at > start && text[at - 1] === " ") at--;
  return at;
}

function graphemes(text: string): Intl.Segments {
  return new Intl.Segmenter(undefined, { granularity: "grapheme" }).segment(text);
}
