/**
 * What is really said for one piece of text, with the way back: normalization and dropped markup as spans that map
 * the characters said to the characters written, and the engine's own text with its escapes mapped to the characters said.
 * A character is a code point everywhere here.
 */
import { normalizeEnglish, type Replacement } from "./english.ts";
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
  /** For the engine: SSML-escaped, without control characters. */
  readonly engineText: string;
  /** Index of the character said for each code point of `engineText`. */
  readonly engineToNormalized: readonly number[];
  /** Whether there is anything to hear. */
  readonly isSpeakable: boolean;
}

export interface SpokenOptions {
  readonly markup: readonly Markup[];
  /** English text normalization; other languages are left to the engine, which reads numbers itself. */
  readonly normalizesEnglish: boolean;
}

/** Letters, numbers and symbols are heard; spaces and punctuation are not, except marks that the engine reads out. */
const AUDIBLE = /[\p{L}\p{N}\p{S}\p{Extended_Pictographic}@#%&*/\\_]/u;

export function prepareSpoken(text: string, options: SpokenOptions): Spoken {
  const original: string[] = [];
  const normalized: string[] = [];
  const spans: Span[] = [];
  const add = (written: string, said: string) => {
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
  };
  for (const { written, said } of rewrite(text, options)) add(written, said);
  return {
    original,
    normalized,
    spans,
    ...escapeForEngine(normalized),
    isSpeakable: AUDIBLE.test(normalized.join("")),
  };
}

function* rewrite(text: string, options: SpokenOptions): Generator<{ written: string; said: string }> {
  let at = 0;
  for (const tag of [...options.markup, { start: text.length, end: text.length }]) {
    const plain = text.slice(at, tag.start);
    yield* replace(plain, options.normalizesEnglish ? normalizeEnglish(plain) : []);
    if (tag.end > tag.start) yield { written: text.slice(tag.start, tag.end), said: "" };
    at = tag.end;
  }
}

function* replace(
  plain: string,
  replacements: readonly Replacement[],
): Generator<{ written: string; said: string }> {
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

function escapeForEngine(normalized: readonly string[]): Pick<Spoken, "engineText" | "engineToNormalized"> {
  const engineToNormalized: number[] = [];
  let engineText = "";
  for (const [index, char] of normalized.entries()) {
    const escaped =
      char === "&" ? "&amp;" : char === "<" ? "&lt;" : UNSPEAKABLE.test(char) ? keepLine(char) : char;
    engineText += escaped;
    for (const _ of escaped) engineToNormalized.push(index);
  }
  return { engineText, engineToNormalized };
}

function keepLine(char: string): string {
  return char === "\n" ? "\n" : " ";
}
