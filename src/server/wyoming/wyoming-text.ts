/** What a Wyoming client wants said, read without trust. */
import { GatewayError } from "../../errors.ts";
import type { WyomingData } from "../../protocol/wyoming.ts";

/** UTF-16 code units of one text, whole or in pieces. */
const MAX_TEXT_CHARS = 32_768;
/** So much text without the end of a sentence is said up to its last word. */
const MAX_SENTENCE_CHARS = 2000;
/** Behind the end of a sentence. */
const SENTENCE_END = /[.!?…]["'”’)\]]*\s|[。！？]|\n/g;

/** The text of `synthesize` and `synthesize-chunk`. Throws invalid_field, text_too_long. */
export function textOf({ text }: WyomingData, before = ""): string {
  if (typeof text !== "string")
    throw new GatewayError("invalid_field", "Field 'text' is not valid: expected a text", { field: "text" });
  if (before.length + text.length <= MAX_TEXT_CHARS) return text;
  const what = `Field 'text' is too long: expected at most ${MAX_TEXT_CHARS} characters`;
  throw new GatewayError("text_too_long", what, { field: "text" });
}

/** null: it names none. */
export function voiceNameOf({ voice }: WyomingData): string | null {
  if (typeof voice !== "object" || voice === null || !("name" in voice)) return null;
  return typeof voice.name === "string" && voice.name !== "" ? voice.name.slice(0, 200) : null;
}

/** Where the last whole sentence of a text ends, of a long one the last word; 0: none does. */
export function sentencesEnd(text: string): number {
  let end = 0;
  for (const match of text.matchAll(SENTENCE_END)) end = match.index + match[0].length;
  if (end > 0 || text.length < MAX_SENTENCE_CHARS) return end;
  return text.lastIndexOf(" ") + 1 || text.length;
}
