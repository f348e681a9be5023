/**
 * What is really said for one piece of text, with the way back: normalization and dropped markup as spans that map
 * the characters said to the characters written, and the engine's own text with its escapes mapped to the characters said.
 * A character is a code point everywhere here.
 */
import type { Normalizer } from "../../text/normalizer.ts";
import type { Replacement } from "../../text/rules.ts";
import { englishPhonemes } from "../engine/languages.ts";
import type { Markup } from "./markup.ts";

/** Characters [originalFrom, originalTo) of the text are said as [normalizedFrom, normalizedTo). Spans are contiguous. */
export interface Span {
  readonly originalFrom: number;
  readonly originalTo: number;
  readonly normalizedFrom: number;
  readonly normalizedTo: number;
  /** Character for character the same. */
  readonly isIdentity: boolean;
}

export interface Spoken {
  readonly original: readonly string[];
  readonly normalized: readonly string[];
  readonly spans: readonly Span[];
  /** For the engine: SSML-escaped, or plain for a model, without control characters. */
  readonly engineText: string;
  /** Index of the character said for each code point of `engineText`. */
  readonly engineToNormalized: readonly number[];
  /** Whether there is anything to hear. */
  readonly isSpeakable: boolean;
}

export interface SpokenOptions {
  readonly markup: readonly Markup[];
  readonly normalizer: Normalizer;
  /** ISO 639-1 code of what it is spoken in. */
  readonly language: string;
  /** The engine's voice, without its variant. */
  readonly engineVoice: string;
  /** For an engine that reads neither SSML nor phonemes. */
  readonly isPlain?: boolean;
}

/** Letters, numbers and symbols are heard; spaces and punctuation are not, except marks that the engine reads out. */
const AUDIBLE = /[\p{L}\p{N}\p{S}\p{Extended_Pictographic}@#%&*/\\_]/u;

/** Whether there is anything to hear in it. */
export function isAudible(text: string): boolean {
  return AUDIBLE.test(text);
}

export function prepareSpoken(text: string, options: SpokenOptions): Spoken {
  const original: string[] = [];
  const normalized: string[] = [];
  const spans: Span[] = [];
  const { isPlain = false } = options;
  const engine = new EngineText(options.normalizer, isPlain);
  for (const { written, said, mnemonics } of rewrite(text, options)) {
    const from = { original: original.length, normalized: normalized.length };
    for (const char of written) original.push(char);
    for (const char of said) normalized.push(char);
    spans.push({
      originalFrom: from.original,
      originalTo: original.length,
      normalizedFrom: from.normalized,
      normalizedTo: normalized.length,
      isIdentity: written === said,
    });
    if (mnemonics === undefined || isPlain) engine.addText(normalized, from.normalized);
    else engine.addPhonemes(englishPhonemes(mnemonics, options.engineVoice), from.normalized);
  }
  return {
    original,
    normalized,
    spans,
    engineText: engine.text,
    engineToNormalized: engine.toNormalized,
    isSpeakable: isAudible(normalized.join("")),
  };
}

/** A stretch of the text and what is said for it. */
interface Said {
  readonly written: string;
  readonly said: string;
  /** The engine's, in place of what is said. */
  readonly mnemonics?: string;
}

function* rewrite(text: string, options: SpokenOptions): Generator<Said> {
  let at = 0;
  const end: Markup = { start: text.length, end: text.length, pauseMs: 0 };
  for (const tag of [...options.markup, end]) {
    const plain = text.slice(at, tag.start);
    yield* replace(plain, options.normalizer.normalize(plain, options.language));
    if (tag.end > tag.start) yield saidFor(text.slice(tag.start, tag.end), tag);
    at = tag.end;
  }
}

function saidFor(written: string, { said }: Pick<Markup, "said">): Said {
  if (said === undefined) return { written, said: "" };
  return "text" in said
    ? { written, said: said.text }
    : { written, said: written, mnemonics: said.mnemonics };
}

function* replace(plain: string, replacements: readonly Replacement[]): Generator<Said> {
  let at = 0;
  for (const { start, end, text } of replacements) {
    if (start > at) yield { written: plain.slice(at, start), said: plain.slice(at, start) };
    yield { written: plain.slice(start, end), said: text };
    at = end;
  }
  if (at < plain.length) yield { written: plain.slice(at), said: plain.slice(at) };
}

/** A control character ends the engine's text or is SSML-invalid; a lone surrogate is no UTF-8. */
const UNSPEAKABLE = /[\p{Cc}\p{Cs}\u{fffe}\u{ffff}]/u;

/** The engine's text, escaped, and the character said for each of its code points. */
class EngineText {
  readonly toNormalized: number[] = [];
  text = "";
  readonly #spellsDigits: boolean;
  readonly #isPlain: boolean;

  constructor({ spellsDigits }: Pick<Normalizer, "spellsDigits">, isPlain: boolean) {
    this.#spellsDigits = spellsDigits;
    this.#isPlain = isPlain;
  }

  /** The characters said from `from` on. */
  addText(normalized: readonly string[], from: number): void {
    for (let index = from; index < normalized.length; index++) {
      const char = normalized[index] ?? "";
      // Two brackets would begin phonemes.
      if (!this.#isPlain && char === "[" && this.text.endsWith("[")) this.#add(" ", index);
      if (this.#spellsDigits && isDigit(char) && isDigit(normalized[index - 1])) this.#add(" ", index);
      this.#add(this.#isPlain ? withoutControls(char) : escaped(char), index);
    }
  }

  /** All for one character: what the engine says of them is about the word. */
  addPhonemes(phonemes: string, index: number): void {
    this.#add(phonemes, index);
  }

  #add(text: string, index: number): void {
    this.text += text;
    for (const _ of text) this.toNormalized.push(index);
  }
}

function isDigit(char: string | undefined): boolean {
  return char !== undefined && /\p{Nd}/u.test(char);
}

function escaped(char: string): string {
  if (char === "&") return "&amp;";
  if (char === "<") return "&lt;";
  return withoutControls(char);
}

function withoutControls(char: string): string {
  if (!UNSPEAKABLE.test(char)) return char;
  return char === "\n" ? "\n" : " ";
}
