import { MAX_BRACKET_TAG } from "../../../text/markup.ts";
import { findPhonemeTags } from "../../text/phoneme-tags.ts";
import type { Respelling } from "../../text/pronunciation.ts";
import { type Direction, directionOf } from "./audio-tags.ts";

/** Markup inside a text that is not read aloud: `<break time="1s"/>`, other tags, and audio tags such as `[laughs]`. */

/** A stretch of the text (UTF-16 indices) that is dropped from speech; `pauseMs` where it makes a pause. */
export interface Markup {
  readonly start: number;
  readonly end: number;
  /** 0 where the stretch only disappears. */
  readonly pauseMs: number;
  /** Where it does not disappear, but is said otherwise. */
  readonly said?: Respelling["said"];
  /** What the voice does at an audio tag that it can act on. */
  readonly direction?: Direction | undefined;
}

/** What is said before such a tag ends there: it pauses, makes a sound, or speaks otherwise behind it. */
export function endsPiece({ pauseMs, direction }: Markup): boolean {
  return pauseMs > 0 || direction !== undefined;
}

/** The longest pause that one break can ask for (the vendor's documented limit). */
const MAX_BREAK_MS = 3000;
/** Pauses of `<break strength="..."/>` without a time, ms (W3C SSML 1.1 section 3.2.3 leaves them to the engine). */
const STRENGTHS_MS = {
  none: 0,
  "x-weak": 100,
  weak: 200,
  medium: 400,
  strong: 700,
  "x-strong": 1000,
} as const;

/** A tag starts with a letter right after `<` or `</`, so that "a < b" is text. Bounded: no tag is longer. */
const TAG = /<\/?[a-zA-Z][^<>]{0,500}>/g;
/** The gateway takes the same for audio tags: it reports no word that is not said. */
const TAG_OR_AUDIO_TAG = new RegExp(`${TAG.source}|\\[\\p{L}[^[\\]<>\\n]{0,${MAX_BRACKET_TAG - 3}}\\]`, "gu");

function patternOf({ audioTags }: { readonly audioTags: boolean }): RegExp {
  return audioTags ? TAG_OR_AUDIO_TAG : TAG;
}

/** All markup of `text`, in order; `audioTags` for models that take `[laughs]`-like directions. */
export function findMarkup(text: string, options: { readonly audioTags: boolean }): Markup[] {
  return Array.from(text.matchAll(patternOf(options)), (match) => {
    const [tag] = match;
    const direction = tag.startsWith("[") ? (directionOf(tag) ?? undefined) : undefined;
    const pauseMs = direction?.pauseMs ?? breakMs(tag);
    return { start: match.index, end: match.index + tag.length, pauseMs, direction };
  });
}

/** Tags that begin or end something, and ask for nothing themselves. */
const SILENT_TAG = /^<(?:\/|speak\b)/i;

/**
 * The tags of `text`, each once, that the voice does nothing of, or not what they say: a phoneme's where its sounds can't
 * be said, a break's where its pause is too long or can't be read, an audio tag's where one of its words changes nothing.
 */
export function leftOutTags(text: string, options: { readonly audioTags: boolean }): string[] {
  const said = new Set(findPhonemeTags(text).map(({ start }) => start));
  const left = Array.from(text.matchAll(patternOf(options)), (match) => {
    const [tag] = match;
    const isDone = tag.startsWith("[")
      ? directionOf(tag)?.isWhole === true
      : SILENT_TAG.test(tag) || isObeyedBreak(tag) || said.has(match.index + tag.length);
    return isDone ? [] : tag;
  });
  return [...new Set(left.flat())];
}

/** Both in order, without the respellings that touch a tag. */
export function withRespellings(markup: readonly Markup[], respellings: readonly Respelling[]): Markup[] {
  const all: Markup[] = [];
  let next = 0;
  for (const { start, end, said } of respellings) {
    for (let tag = markup[next]; tag !== undefined && tag.start < end; tag = markup[++next]) all.push(tag);
    if ((all.at(-1)?.end ?? 0) <= start) all.push({ start, end, pauseMs: 0, said });
  }
  return [...all, ...markup.slice(next)];
}

function isBreak(tag: string): boolean {
  return /^<break\b/i.test(tag);
}

function isObeyedBreak(tag: string): boolean {
  const askedMs = isBreak(tag) ? askedBreakMs(tag) : undefined;
  return askedMs !== undefined && askedMs <= MAX_BREAK_MS;
}

/** 0 of any other tag. */
function breakMs(tag: string): number {
  if (!isBreak(tag)) return 0;
  return Math.min(MAX_BREAK_MS, askedBreakMs(tag) ?? STRENGTHS_MS.medium);
}

/** The pause of a break; undefined where its time or strength can't be read. */
function askedBreakMs(tag: string): number | undefined {
  const time = /\btime\s*=\s*(?:["']\s*)?(\d+(?:\.\d+)?)\s*(ms|s)/i.exec(tag);
  if (time !== null) return Number(time[1]) * (time[2]?.toLowerCase() === "ms" ? 1 : 1000);
  const strength = /\bstrength\s*=\s*["']?([a-z-]+)/i.exec(tag)?.[1]?.toLowerCase();
  if (strength !== undefined) return Object.entries(STRENGTHS_MS).find(([name]) => name === strength)?.[1];
  return /\b(?:time|strength)\b/i.test(tag) ? undefined : STRENGTHS_MS.medium;
}
