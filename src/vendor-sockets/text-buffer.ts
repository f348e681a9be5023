/** The text of a context that no generation has taken yet. Cuts between words, never inside a tag. */
import { KIND, kindOf } from "../text/characters.ts";

/** The longest text of one generation: less than any model's limit. */
const MAX_GENERATION_CHARS = 4000;
/** A longer one is no tag that was not closed yet, but text with a `<`. */
const MAX_TAG_CHARS = 512;
/** What is longer is not waited for: words and addresses are shorter. */
const MAX_WORD_CHARS = 100;
/** Elements that mean nothing when they are cut. */
const ELEMENT = /<(phoneme|say-as|sub|emphasis|w)\b[^<>]*>.*?<\/\1\s*>/gis;
const TAG = /<\/?[a-z][^<>]*>/gi;
/** An element or a tag whose end has not come. */
const OPEN_ELEMENT = /<(phoneme|say-as|sub|emphasis|w)\b(?:[^<>]*[^/<>])?>(?!.*<\/\1\s*>)/is;
const OPEN_TAG = /<(?:\/?[a-z][^<>]*|\/)?$/i;

/** Whether there is something to say in it: the upstream refuses a text of blanks. */
export function isSpeakable(text: string): boolean {
  return /[^\s\p{P}\p{C}]/u.test(text);
}

export class TextBuffer {
  readonly #keepsMarkup: boolean;
  #text = "";
  /** Whether all that was pushed, taken or not, ends in a blank; the beginning counts as one. */
  #endsInBlank = true;

  /** `keepsMarkup`: tags are not cut; otherwise they are text like any other. */
  constructor(keepsMarkup: boolean) {
    this.#keepsMarkup = keepsMarkup;
  }

  /** UTF-16 code units. */
  get chars(): number {
    return this.#text.length;
  }

  /** Blanks behind a blank, or before the first word, are nothing: clients send them to keep a socket alive. */
  push(text: string): void {
    const isBetween = text.trim() === "" || this.#text.trim() === "";
    const added = this.#endsInBlank && isBetween ? text.trimStart() : text;
    if (added === "") return;
    this.#text += added;
    this.#endsInBlank = /\s$/.test(added);
  }

  /** All whole words (`wordEnd`), to be said in one; null where there is nothing to say. */
  takeWords(): string | null {
    const end = wordEnd(this.#text, this.#keepsMarkup);
    return isSpeakable(this.#text.slice(0, end)) ? this.#take(end) : null;
  }

  /** Everything that can be said, in pieces that no model refuses for their length. */
  takeAll(): string[] {
    const pieces: string[] = [];
    while (isSpeakable(this.#text)) {
      const isLast = this.#text.length <= MAX_GENERATION_CHARS;
      const piece = this.#take(
        isLast ? this.#text.length : wordEnd(this.#text, this.#keepsMarkup) || MAX_GENERATION_CHARS,
      );
      if (isSpeakable(piece)) pieces.push(piece);
    }
    return pieces;
  }

  /** As `takeAll`, but a tag that is not closed yet waits for its end. */
  takeSettled(): string[] {
    const all = this.#text;
    const end = this.#keepsMarkup ? openMarkup(all) : all.length;
    this.#text = all.slice(0, end);
    const pieces = this.takeAll();
    this.#text += all.slice(end);
    return pieces;
  }

  #take(end: number): string {
    const taken = this.#text.slice(0, end);
    this.#text = this.#text.slice(end);
    return taken;
  }
}

/**
 * Where the last whole word of a generation ends, with the blanks behind it; 0 where there is none, or markup begins that
 * is not closed. A word may still go on at the end, unless its script has no blanks (Chinese, Japanese, Thai).
 */
export function wordEnd(all: string, keepsMarkup: boolean): number {
  const text = all.slice(0, MAX_GENERATION_CHARS);
  const settled = keepsMarkup ? text.slice(0, openMarkup(text)) : text;
  const hidden = keepsMarkup ? settled.replace(ELEMENT, cover).replace(TAG, cover) : settled;
  const wordStart = hidden.search(/\s\S*$/) + 1;
  const isWhole = wordStart <= hidden.length / 2 && mayBeCut(hidden.slice(wordStart));
  const end = isWhole ? hidden.length : wordStart;
  // Half a character would be sent.
  const isHalf = /[\ud800-\udbff]$/.test(text.slice(0, end)) && end > 1;
  return isHalf ? end - 1 : end;
}

/** Where markup begins that is not closed yet; the text's end where there is none. */
function openMarkup(text: string): number {
  const starts = [OPEN_ELEMENT, OPEN_TAG].map((pattern) => text.search(pattern)).filter((at) => at >= 0);
  const start = Math.min(...starts, text.length);
  return text.length - start > MAX_TAG_CHARS ? text.length : start;
}

/** Whether a text without blanks need not be one word. */
function mayBeCut(text: string): boolean {
  return text.length > MAX_WORD_CHARS || [...text].some((character) => isUnspaced(character));
}

function isUnspaced(character: string): boolean {
  return kindOf(character.codePointAt(0) ?? 0) === KIND.unspaced;
}

function cover(markup: string): string {
  return "x".repeat(markup.length);
}
