/**
 * Finds what is markup and not text: `<break time="1s"/>`, `</phoneme>` and, where asked for, `[laughs]`. Strict, so
 * that "a < b", "i <3 u" and "[a long remark ...]" stay text. Character by character: a tag may come in any pieces.
 */
import { unitsOf } from "./characters.ts";

/** Code points of the longest `<...>`; SSML phonemes are about 80. An open one keeps speech waiting: bounded. */
const MAX_TAG = 512;
/** Code points of the longest `[...]`; audio tags are a few words. */
export const MAX_BRACKET_TAG = 64;

const LESS = 0x3c;
const GREATER = 0x3e;
const SLASH = 0x2f;
const EQUALS = 0x3d;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const NEWLINE = 0x0a;

export interface TagGateHandlers {
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
  #state: TagState = "outside";
  /** The code points of a possible tag so far, and where it starts. */
  #held: number[] = [];
  #heldAt = 0;

  constructor(handlers: TagGateHandlers, options: TagGateOptions) {
    this.#handlers = handlers;
    this.#hasBracketTags = options.hasBracketTags;
  }

  /** Whether something that may become a tag is held back. */
  get isHolding(): boolean {
    return this.#state !== "outside";
  }

  /** Where what is held back starts; `offset`, the end of the text so far, where nothing is. */
  settledTo(offset: number): number {
    return this.isHolding ? this.#heldAt : offset;
  }

  /** Whether `step` would only hand this code point on as text: the owner may take it itself. */
  passes(codePoint: number): boolean {
    return this.#state === "outside" && !this.#isOpening(codePoint);
  }

  step(codePoint: number, index: number): void {
    if (this.#state === "outside") this.#begin(codePoint, index);
    else this.#continue(codePoint, index);
  }

  /** The text ends here (or is flushed): what is held back was no tag. */
  finish(): void {
    while (this.isHolding) this.#release();
  }

  #begin(codePoint: number, index: number): void {
    if (!this.#isOpening(codePoint)) {
      this.#handlers.character(codePoint, index);
      return;
    }
    this.#state = codePoint === LESS ? "less" : "bracket";
    this.#held.push(codePoint);
    this.#heldAt = index;
  }

  #isOpening(codePoint: number): boolean {
    return codePoint === LESS || (codePoint === OPEN_BRACKET && this.#hasBracketTags);
  }

  #continue(codePoint: number, index: number): void {
    this.#held.push(codePoint);
    const limit = this.#state === "bracket" || this.#state === "inBracket" ? MAX_BRACKET_TAG : MAX_TAG;
    const next = this.#held.length > limit ? "none" : nextState(this.#state, codePoint);
    if (next === "none") this.#release();
    else if (next === "complete") {
      const start = this.#heldAt;
      this.#reset();
      this.#handlers.tag(start, index + 1);
    } else this.#state = next;
  }

  /** The first held character is text; the others get their own chance. No tag may hold a `<`: each is held twice at most. */
  #release(): void {
    const held = this.#held;
    let index = this.#heldAt;
    this.#reset();
    for (const [i, codePoint] of held.entries()) {
      if (i === 0) this.#handlers.character(codePoint, index);
      else this.step(codePoint, index);
      index += unitsOf(codePoint);
    }
  }

  #reset(): void {
    this.#state = "outside";
    this.#held = [];
  }
}

type TagState =
  | "outside"
  | "less"
  | "slash"
  | "name"
  | "closingName"
  | "space"
  | "closingSpace"
  | "attribute"
  | "attributeSpace"
  | "equals"
  | "doubleQuoted"
  | "singleQuoted"
  | "value"
  | "selfClosing"
  | "bracket"
  | "inBracket";

function nextState(state: TagState, code: number): TagState | "none" | "complete" {
  if (code === LESS) return "none";
  switch (state) {
    case "less":
      if (code === SLASH) return "slash";
      return isNameStart(code) ? "name" : "none";
    case "slash":
      return isNameStart(code) ? "closingName" : "none";
    case "closingName":
      if (isNamePart(code)) return "closingName";
      return endOfClosing(code);
    case "closingSpace":
      return endOfClosing(code);
    case "name":
      return isNamePart(code) ? "name" : betweenAttributes(code, false);
    case "space":
      return betweenAttributes(code, true);
    case "value":
      return betweenAttributes(code, false);
    case "attribute":
      if (isNamePart(code)) return "attribute";
      return code === EQUALS ? "equals" : isTagSpace(code) ? "attributeSpace" : "none";
    case "attributeSpace":
      return code === EQUALS ? "equals" : isTagSpace(code) ? "attributeSpace" : "none";
    case "equals":
      if (code === 0x22) return "doubleQuoted";
      if (code === 0x27) return "singleQuoted";
      return isTagSpace(code) ? "equals" : "none";
    case "doubleQuoted":
      return code === 0x22 ? "value" : "doubleQuoted";
    case "singleQuoted":
      return code === 0x27 ? "value" : "singleQuoted";
    case "selfClosing":
      return code === GREATER ? "complete" : "none";
    case "bracket":
      return isTagSpace(code) || code === CLOSE_BRACKET || code === OPEN_BRACKET ? "none" : "inBracket";
    case "inBracket":
      if (code === CLOSE_BRACKET) return "complete";
      return code === OPEN_BRACKET || code === NEWLINE ? "none" : "inBracket";
    case "outside":
      return "none";
  }
}

function betweenAttributes(code: number, mayStartAttribute: boolean): TagState | "none" | "complete" {
  if (code === GREATER) return "complete";
  if (code === SLASH) return "selfClosing";
  if (isTagSpace(code)) return "space";
  return mayStartAttribute && isNameStart(code) ? "attribute" : "none";
}

function endOfClosing(code: number): TagState | "none" | "complete" {
  if (code === GREATER) return "complete";
  return isTagSpace(code) ? "closingSpace" : "none";
}

function isNameStart(code: number): boolean {
  return (code >= 0x61 && code <= 0x7a) || (code >= 0x41 && code <= 0x5a);
}

/** Letters, digits and - . _ : as in XML, ASCII only. */
function isNamePart(code: number): boolean {
  return (
    isNameStart(code) || (code >= 0x30 && code <= 0x3a) || code === 0x2d || code === 0x2e || code === 0x5f
  );
}

function isTagSpace(code: number): boolean {
  return code === 0x20 || (code >= 0x09 && code <= 0x0d);
}
