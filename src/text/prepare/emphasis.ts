/** Which runs of `*`, `_` and `~~` are emphasis. Decided by what stands on either side, so that speech needn't wait for the closing run. */
import { KIND, type Kind, kindOf } from "../characters.ts";

const MAX_OPEN = 16;

/** A run of one character. `before`, `after`: code points beside it; 0 = none. */
interface Run {
  readonly character: string;
  readonly length: number;
  readonly before: number;
  readonly after: number;
}

/** Opened and not yet closed, for one paragraph. */
export class Emphasis {
  readonly #open = new Map<string, number[]>();

  /** A new paragraph. */
  clear(): void {
    if (this.#open.size > 0) this.#open.clear();
  }

  /** Whether a run opens only if another one closes it: `**` within a word, which may be a power as well. */
  asksForClosing(run: Run): boolean {
    const { character, length, before, after } = run;
    if (character !== "*" || length !== 2) return false;
    const sides = { before: sideOf(before), after: sideOf(after) };
    if (sides.before !== "word" || sides.after !== "word") return false;
    // x**2, 10**6.
    if (kindOf(after) === KIND.digit) return false;
    return !mayClose(character, length, sides, this.#open.get(character) ?? []);
  }

  /** Whether a run is emphasis and not text. `isClosed`: another one was looked for, and closes it. */
  take({ character, length, before, after }: Run, isClosed = false): boolean {
    // A run so long that it comes in parts: the other parts were taken.
    if (before === character.charCodeAt(0)) return true;
    if (character === "~" && length !== 2) return false;
    const sides = { before: sideOf(before), after: sideOf(after) };
    const open = this.#open.get(character) ?? [];
    if (mayClose(character, length, sides, open)) {
      open.length = Math.max(open.length - Math.max(closedBy(open, length), 1), 0);
      return true;
    }
    if (!isClosed && !mayOpen(character, sides)) return false;
    if (open.length < MAX_OPEN) open.push(length);
    this.#open.set(character, open);
    return true;
  }
}

type Side = "space" | "word" | "unspaced" | "open" | "close" | "other";
interface Sides {
  readonly before: Side;
  readonly after: Side;
}

function sideOf(codePoint: number): Side {
  return codePoint === 0 ? "space" : sideOfKind(kindOf(codePoint));
}

function sideOfKind(kind: Kind): Side {
  if (kind <= KIND.glue) return "space";
  if (kind === KIND.unspaced) return "unspaced";
  if (kind >= KIND.extend && kind <= KIND.digit) return "word";
  if (kind === KIND.open || kind === KIND.openQuote) return "open";
  return kind === KIND.close ? "close" : "other";
}

function mayClose(character: string, length: number, { before, after }: Sides, open: number[]): boolean {
  if (open.length === 0 || before === "space" || before === "open") return false;
  const isInside = before === "word" && after === "word";
  // snake_case; "2*3" within bold text: only a run as long as the opening one closes within a word.
  if (character === "_") return after !== "word" && after !== "unspaced";
  return !isInside || open.at(-1) === length;
}

/** How many of the opened runs a closing run closes: `***` closes `**` and `*`. */
function closedBy(open: readonly number[], length: number): number {
  let left = length;
  let closed = 0;
  while (closed < open.length && left > 0) {
    closed++;
    left -= open[open.length - closed] ?? 0;
  }
  return closed;
}

function mayOpen(character: string, { before, after }: Sides): boolean {
  if (after === "space" || after === "close") return false;
  if (before === "space" || before === "open" || before === "other") return true;
  // Scripts without spaces have no word edge to look for.
  return character !== "_" && (before === "unspaced" || (before === "word" && after === "unspaced"));
}
