/**
 * Finds markup without its other half in a text that comes in any pieces: SSML elements that are opened and not closed, or the
 * other way round, tags without their `>`, and one bracket of a pair that may have been meant as an audio tag.
 */
import {
  ATOMIC_ELEMENTS,
  MAX_BRACKET_TAG,
  MAX_TAG,
  NAME,
  readTag,
  SPACE,
  type Tag,
  TagGate,
} from "./markup.ts";

/** `<break>` is not among them: vendors take it without a slash. */
const PAIRED: ReadonlySet<string> = new Set([
  ...ATOMIC_ELEMENTS,
  ...["prosody", "speak", "p", "s", "voice", "lang", "audio"],
]);
const KNOWN: ReadonlySet<string> = new Set([...PAIRED, "break"]);
/** A tag so far that it can't be taken for a comparison: `</sub `, or `<break time=`. */
const BEGUN_TAG = new RegExp(`^<(?:/(${NAME})(?![a-z0-9:._-])|(${NAME})${SPACE}+${NAME}${SPACE}*=)`, "i");
const MAX_NAMES = 16;
const LESS = 0x3c;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;

export class TagBalance {
  /** Offset behind the text that was pushed. */
  #end = 0;
  readonly #gate = new TagGate(
    {
      character: (codePoint, index) => this.#character(codePoint, index),
      tag: (start, end) => this.#tag(start, end),
    },
    { hasBracketTags: false },
  );
  /** Text from `#base` on: what may be a tag, and what was pushed last. */
  #text = "";
  #base = 0;
  #open: string[] = [];
  /** Whether a letter follows each open bracket, as in an audio tag. */
  #brackets: boolean[] = [];
  /** Where the last bracket was opened. */
  #bracketAt = 0;
  /** The character before, as long as no tag stands between. */
  #previous = 0;
  readonly #odd = new Set<string>();

  push(text: string): void {
    this.#text += text;
    for (const character of text) {
      this.#gate.step(character.codePointAt(0) ?? 0, this.#end);
      this.#end += character.length;
    }
    const keepFrom = this.#gate.settledTo(this.#end);
    this.#text = this.#text.slice(keepFrom - this.#base);
    this.#base = keepFrom;
  }

  /** Whether the text so far ends inside a tag, or what may become one, or between two that belong together. */
  get isOpen(): boolean {
    const isInBracket = this.#previous === OPEN_BRACKET || this.#brackets.at(-1) === true;
    const isShort = this.#end - this.#bracketAt <= MAX_BRACKET_TAG;
    return (
      this.#gate.isHolding || (isInBracket && isShort) || this.#open.some((name) => ATOMIC_ELEMENTS.has(name))
    );
  }

  /**
   * The text is complete: what is without its other half, each once, at most 16: "sub" was not closed, "/sub" was not
   * opened, "<break" and "</sub" have no `>`, "[" and "]" stand alone.
   */
  end(): readonly string[] {
    this.#gate.finish();
    if (this.#brackets.includes(true)) this.#note("[");
    this.#brackets = [];
    for (const name of this.#open) this.#note(name);
    this.#open = [];
    return [...this.#odd];
  }

  #tag(start: number, end: number): void {
    this.#previous = 0;
    const tag = readTag(this.#text.slice(start - this.#base, end - this.#base));
    if (tag !== null && PAIRED.has(tag.name)) this.#match(tag);
  }

  /** Text that is no tag. */
  #character(codePoint: number, index: number): void {
    const previous = this.#previous;
    this.#previous = codePoint;
    if (previous === OPEN_BRACKET && isLetter(codePoint)) {
      this.#brackets[this.#brackets.length - 1] = true;
    }
    if (codePoint === LESS) this.#begunTag(index);
    else if (codePoint === OPEN_BRACKET) {
      this.#bracketAt = index;
      this.#brackets.push(false);
    } else if (codePoint === CLOSE_BRACKET) {
      if (this.#brackets.pop() === undefined && isLetter(previous)) this.#note("]");
    }
  }

  /** A `<` that begins no tag: one was meant where a known name and an attribute follow. */
  #begunTag(index: number): void {
    const from = index - this.#base;
    const match = BEGUN_TAG.exec(this.#text.slice(from, from + MAX_TAG));
    if (match === null) return;
    const [, closing, opening] = match;
    const name = (closing ?? opening ?? "").toLowerCase();
    if (KNOWN.has(name)) this.#note(closing === undefined ? `<${name}` : `</${name}`);
  }

  #match({ name, role }: Tag): void {
    if (role === "opening") this.#open.push(name);
    else if (role === "closing") this.#close(name);
  }

  /** What was opened inside and not closed is what is odd, not the element around it. */
  #close(name: string): void {
    const index = this.#open.lastIndexOf(name);
    if (index < 0) this.#note(`/${name}`);
    else for (const inner of this.#open.splice(index).slice(1)) this.#note(inner);
  }

  #note(name: string): void {
    if (this.#odd.size < MAX_NAMES) this.#odd.add(name);
  }
}

function isLetter(codePoint: number): boolean {
  return /\p{L}/u.test(String.fromCodePoint(codePoint));
}
