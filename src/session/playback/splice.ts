/** Where two segments of an utterance meet: how the last one ended, and how long a pause is missing before the next. */

import { TICKS_PER_MS } from "../../timing/ticks.ts";
import type { SpliceSettings } from "../session-deps.ts";
import type { Utterance } from "./utterance.ts";

/** The silence that a response still begins with when it was trimmed. */
const LEAD_TICKS = 20 * TICKS_PER_MS;
/** A shorter pause is not worth a slice of its own. */
const MIN_PAUSE_TICKS = 20 * TICKS_PER_MS;

/** What may stand behind the mark, UTF-16 units: longer tails are rare and not looked at whole. */
const MAX_TAIL = 256;
/** White space, brackets and quotes that close, emphasis, pictures and elements' closing tags: they hide no mark. */
const TAIL =
  /(?:[\s\p{Pe}\p{Pf}\p{Pi}\p{Quotation_Mark}*_]|<\/[a-z][a-z0-9:._-]*\s*>|\p{Extended_Pictographic}|\p{RI}|\p{Emoji_Modifier}|[\u{e0020}-\u{e007f}]|\u200d|\ufe0f|[0-9#*]\ufe0f?\u20e3)+$/iu;
/** Sentence marks of the larger scripts. */
const SENTENCE = /[.!?\u2026\u3002\uff01\uff1f\uff0e\uff61\u0964\u0965\u061f\u06d4\u104b]$/u;
const CLAUSE = /[,;:\u060c\u061b\u3001\uff0c\uff1b\uff1a\u2013\u2014-]$/u;

/** A `<break time="1s"/>` at an end of a text: it is no silence to be trimmed. */
const FIRST_BREAK = /^[^\p{L}\p{N}<]*<break\b[^<>]*>/iu;
const LAST_BREAK = /<break\b([^<>]*)>[^\p{L}\p{N}<]*$/iu;
const BREAK = /^<break\b[^<>]*>$/iu;
const BREAK_TIME = /\btime\s*=\s*["']\s*(\d+(?:\.\d+)?)\s*(ms|s)\s*["']/iu;
/** A tag is no longer than that; only the ends of a text are looked at. */
const MAX_TAG_CHARS = 256;

interface End {
  readonly utterance: Utterance;
  /** The punctuation at its end asks for the pause. */
  readonly text: string;
  /** Silence that the upstream has left of its own. */
  readonly silenceTicks: number;
}

export class Splice {
  readonly #settings: SpliceSettings;
  #end: End | null = null;

  constructor(settings: SpliceSettings) {
    this.#settings = settings;
  }

  /** A segment was spoken to its end. */
  note(end: End): void {
    this.#end = end;
  }

  /** What follows does not go on with it. */
  forget(): void {
    this.#end = null;
  }

  /** The silence to be rendered before the next segment of `utterance`, ticks; 0: none. Asked once a splice. */
  takePause(utterance: Utterance): number {
    const end = this.#end;
    this.#end = null;
    if (end?.utterance !== utterance) return 0;
    const wantedTicks = splicePauseMs(end.text, this.#settings) * TICKS_PER_MS;
    const missing = wantedTicks - end.silenceTicks - LEAD_TICKS;
    return missing < MIN_PAUSE_TICKS ? 0 : missing;
  }
}

/** ms that should pass between the last sound of `text` and the first of what follows. */
export function splicePauseMs(text: string, settings: SpliceSettings): number {
  const end = text.slice(-MAX_TAIL);
  const blank = end.slice(end.trimEnd().length);
  if (blank.indexOf("\n") !== blank.lastIndexOf("\n")) return settings.pauseParagraphMs;
  const [tail = ""] = TAIL.exec(end) ?? [];
  const said = end.slice(0, end.length - tail.length);
  if (SENTENCE.test(said) || tail.includes("\n")) return settings.pauseSentenceMs;
  return CLAUSE.test(said) ? settings.pauseClauseMs : 0;
}

export function beginsWithBreak(text: string): boolean {
  return FIRST_BREAK.test(text.slice(0, MAX_TAG_CHARS));
}

/**
 * The first `spokenChars` of a segment and the punctuation behind them, which asks for the pause that follows. A break at
 * the end comes besides.
 */
export function spliceTextOf(text: string, spokenChars: number): string {
  const end = spokenChars + text.slice(spokenChars).search(/[\p{L}\p{N}]|$/u);
  return withoutLastBreaks(text.slice(0, end));
}

function withoutLastBreaks(text: string): string {
  for (let end = text.length; ; ) {
    const tagEnd = text.slice(0, end).trimEnd().length;
    const tagStart = text.lastIndexOf("<", tagEnd - 1);
    if (tagStart < 0 || !BREAK.test(text.slice(tagStart, tagEnd))) return text.slice(0, end);
    end = tagStart;
  }
}

/** The length of the break that a text ends with, ticks: 0 where it gives none; null where it ends with no break. */
export function lastBreakTicks(text: string): number | null {
  const [, attributes] = LAST_BREAK.exec(text.slice(-MAX_TAG_CHARS)) ?? [];
  if (attributes === undefined) return null;
  const [, count = "0", unit] = BREAK_TIME.exec(attributes) ?? [];
  return Number(count) * (unit?.toLowerCase() === "s" ? 1000 : 1) * TICKS_PER_MS;
}
