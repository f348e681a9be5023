/**
 * A recorded stream of tokens: one JSON object a line, `{"at_ms": 31.4, "text": " there"}`, in the order of their
 * times; a first line without `text` may say what it is about and in which language it is.
 */
import type { Clock } from "../../kit/clock.ts";
import { usageError } from "../exit.ts";

export interface RecordedToken {
  /** After the first token of the recording, ms. */
  readonly atMs: number;
  /** UTF-16 without lone surrogates; may begin or end in the middle of a grapheme. */
  readonly text: string;
}

export interface Recording {
  /** As the header names it, e.g. `zh`. */
  readonly language: string | undefined;
  readonly tokens: readonly RecordedToken[];
}

const EXPECTED = 'expected {"at_ms": milliseconds, "text": "token"}';

/** Throws `invalid_config` with the line that is wrong; never with its text. */
export function parseRecording(content: string, file: string): Recording {
  const tokens: RecordedToken[] = [];
  let language: string | undefined;
  for (const [index, line] of content.split("\n").entries()) {
    if (line.trim() === "") continue;
    const fail = (what: string) =>
      usageError(`Recording "${file}": line ${index + 1}: ${what}, ${EXPECTED}`, "tokens");
    const entry = objectOf(line);
    if (entry === undefined) throw fail("no JSON object");
    if (index === 0 && entry.text === undefined) {
      if (typeof entry.language === "string") language = entry.language;
      continue;
    }
    tokens.push(tokenOf(entry, { fail, notBeforeMs: tokens.at(-1)?.atMs ?? 0 }));
  }
  if (tokens.length === 0) throw usageError(`Recording "${file}": no tokens, ${EXPECTED} a line`, "tokens");
  return { language, tokens };
}

interface LineContext {
  readonly fail: (what: string) => Error;
  readonly notBeforeMs: number;
}

function tokenOf(
  entry: Readonly<Record<string, unknown>>,
  { fail, notBeforeMs }: LineContext,
): RecordedToken {
  const { at_ms: atMs, text } = entry;
  if (typeof text !== "string") throw fail("text is no string");
  if (/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/.test(text))
    throw fail("text has half of a surrogate pair");
  if (typeof atMs !== "number" || atMs < 0) throw fail("at_ms is no time");
  if (atMs < notBeforeMs) throw fail("at_ms is before that of the token before");
  return { atMs, text };
}

function objectOf(line: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : undefined;
  } catch {
    // The caller names the line; what JSON.parse says of it may quote it.
    return undefined;
  }
}

/** Hands out each token at its time, or as soon as it is asked for where that is later. */
export async function* playRecording({ tokens }: Recording, clock: Clock): AsyncGenerator<string> {
  const startMs = clock.nowMs();
  for (const { atMs, text } of tokens) {
    const dueMs = startMs + atMs;
    if (clock.nowMs() < dueMs) {
      await new Promise<void>((resolve) => {
        clock.at(dueMs, resolve);
      });
    }
    yield text;
  }
}
