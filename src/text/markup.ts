/**
 * Finds what is markup and not text: `<break time="1s"/>`, `</phoneme>` and, where asked for, `[laughs]`. Strict, so
 * that "a < b", "i <3 u" and "[a long remark ...]" stay text. A tag may come in any pieces.
 */

/** UTF-16 units of the longest `<...>`; SSML phonemes are about 80. An open one keeps speech waiting: bounded. */
export const MAX_TAG = 512;
/** UTF-16 units of the longest `[...]`; audio tags are a few words. */
export const MAX_BRACKET_TAG = 64;

const LESS = 0x3c;
const OPEN_BRACKET = 0x5b;

/** As in XML, but ASCII only. No tag holds a `<`, not even in quotes: the next one begins there. */
export const NAME = "[a-z][a-z0-9:._-]*";
export const SPACE = "[\\t-\\r ]";
const ATTRIBUTES = `(?:${SPACE}+${NAME}${SPACE}*=${SPACE}*(?:"[^"<]*"|'[^'<]*'))*`;
const TAG = new RegExp(`^<(?:/${NAME}${SPACE}*|${NAME}${ATTRIBUTES}${SPACE}*/?)>`, "i");
/** What may become a tag: it ends within a closing tag, within an attribute, or behind one. */
const OPEN_ATTRIBUTE = `${SPACE}+${NAME}(?:${SPACE}*(?:=${SPACE}*(?:"[^"<]*|'[^'<]*)?)?)`;
const OPEN_TAG = new RegExp(
  `^<(?:/(?:${NAME}${SPACE}*)?|${NAME}${ATTRIBUTES}(?:${OPEN_ATTRIBUTE}|${SPACE}*/?))?$`,
  "i",
);
const BRACKET_TAG = /^\[[^\t-\r [\]<][^[\]<\n]*\]/;
const OPEN_BRACKET_TAG = /^\[(?:[^\t-\r [\]<][^[\]<\n]*)?$/;

/** `text` begins with `<` or `[`: the length of the tag that it begins with, 0 for none, -1 where more text decides. */
export function tagLength(text: string): number {
  const isBracket = text.startsWith("[");
  const max = isBracket ? MAX_BRACKET_TAG : MAX_TAG;
  const length = (isBracket ? BRACKET_TAG : TAG).exec(text)?.[0].length ?? 0;
  if (length > 0) return length <= max ? length : 0;
  return text.length <= max && (isBracket ? OPEN_BRACKET_TAG : OPEN_TAG).test(text) ? -1 : 0;
}

export interface Tag {
  /** Lower case: vendors take both. */
  readonly name: string;
  readonly role: "opening" | "closing" | "alone";
}

const TAG_NAME = new RegExp(`^<(/?)(${NAME})`, "i");

/** `text` is a whole tag; null for a bracket tag (`[laughs]`), which has no name. */
export function readTag(text: string): Tag | null {
  const match = TAG_NAME.exec(text);
  if (match === null) return null;
  const name = (match[2] ?? "").toLowerCase();
  if (match[1] === "/") return { name, role: "closing" };
  return { name, role: text.endsWith("/>") ? "alone" : "opening" };
}

/** SSML elements that mean nothing when they are cut: the service would say the tags, or the wrong sound. */
export const ATOMIC_ELEMENTS: ReadonlySet<string> = new Set(["phoneme", "say-as", "sub", "w", "emphasis"]);

interface TagGateHandlers {
  /** A code point that is text, with the UTF-16 offset where it stands. */
  readonly character: (codePoint: number, index: number) => void;
  /** A whole tag, `end` exclusive. */
  readonly tag: (start: number, end: number) => void;
}

export interface TagGateOptions {
  /** Whether `[laughs]` is a tag too. */
  readonly hasBracketTags: boolean;
}

/** Lets text through and holds back what may be a tag until it is known to be one or not. */
export class TagGate {
  readonly #handlers: TagGateHandlers;
  readonly #hasBracketTags: boolean;
  /** A possible tag so far, and where it starts; "" = none. */
  #held = "";
  #heldAt = 0;

  constructor(handlers: TagGateHandlers, options: TagGateOptions) {
    this.#handlers = handlers;
    this.#hasBracketTags = options.hasBracketTags;
  }

  /** Whether something that may become a tag is held back. */
  get isHolding(): boolean {
    return this.#held !== "";
  }

  /** Where what is held back starts; `offset`, the end of the text so far, where nothing is. */
  settledTo(offset: number): number {
    return this.isHolding ? this.#heldAt : offset;
  }

  /** Whether `step` would only hand this code point on as text: the owner may take it itself. */
  passes(codePoint: number): boolean {
    return !this.isHolding && !this.#isOpening(codePoint);
  }

  step(codePoint: number, index: number): void {
    if (this.passes(codePoint)) {
      this.#handlers.character(codePoint, index);
      return;
    }
    if (!this.isHolding) this.#heldAt = index;
    this.#held += String.fromCodePoint(codePoint);
    const length = tagLength(this.#held);
    if (length === 0) this.#release();
    else if (length > 0) {
      this.#held = "";
      this.#handlers.tag(this.#heldAt, index + 1);
    }
  }

  /** The text ends here (or is flushed): what is held back was no tag. */
  finish(): void {
    while (this.isHolding) this.#release();
  }

  #isOpening(codePoint: number): boolean {
    return codePoint === LESS || (codePoint === OPEN_BRACKET && this.#hasBracketTags);
  }

  /** The first held character is text; the others get their own chance. No tag may hold a `<`: each is held twice at most. */
  #release(): void {
    const held = this.#held;
    const heldAt = this.#heldAt;
    this.#held = "";
    let index = heldAt;
    for (const character of held) {
      const codePoint = character.codePointAt(0) ?? 0;
      if (index === heldAt) this.#handlers.character(codePoint, index);
      else this.step(codePoint, index);
      index += character.length;
    }
  }
}

// Brackets that direct a voice: `[laughs]`. Expressive models act on them; others would read them aloud.
const WORD = "\\p{L}[\\p{L}\\p{M}'’-]*";
/** One to five words. A letter alone is none: "[x] done", "[T]he". */
const AUDIO_TAG = new RegExp(`^\\[(?![a-z]\\])${WORD}(?:,? ${WORD}){0,4}\\]$`, "iu");
const DIRECTION = /^\[\p{L}/u;

/**
 * Whether a whole bracket is left out where the model would read it. Narrow, so that no remark is lost: "[1]", "[Smith,
 * 2020]" and long ones are text.
 */
export function isAudioTag(bracket: string): boolean {
  return AUDIO_TAG.test(bracket);
}

/** Whether a whole bracket begins with a letter: an expressive model takes each such bracket as a direction and does not say it. */
export function isDirection(bracket: string): boolean {
  return DIRECTION.test(bracket);
}
