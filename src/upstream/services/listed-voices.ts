/** The voices that a service lists, read without trust. */
import { isObject, objectOf, textOf } from "./json-values.ts";

export interface ServiceVoice {
  /** The service's own. */
  readonly id: string;
  /** "": it has none beside its id. */
  readonly name: string;
  /** Where they are known: `language`, `gender`, `accent`, `descriptive`. */
  readonly labels: Readonly<Record<string, string>>;
}

/** Where a service lists its voices. */
export interface VoiceListing {
  /** Asked with GET. */
  readonly path: string;
  /** What can't be read is left out. */
  read(body: unknown): readonly ServiceVoice[];
}

/** Which fields of an entry hold what; the first that there is counts. */
export interface VoiceFields {
  readonly id: readonly string[];
  readonly name: readonly string[];
  readonly labels?: (entry: Readonly<Record<string, unknown>>) => Readonly<Record<string, unknown>>;
}

/** Voices of one service that are listed. */
export const MAX_LISTED_VOICES = 1000;
const MAX_TEXT_CHARS = 200;

/** `list`: entries, or bare ids. */
export function listedVoices(list: unknown, { id, name, labels }: VoiceFields): ServiceVoice[] {
  if (!Array.isArray(list)) return [];
  const read = list.slice(0, MAX_LISTED_VOICES).map((entry: unknown): ServiceVoice => {
    const voice = objectOf(entry);
    const own = typeof entry === "string" ? entry : firstOf(voice, id);
    return {
      id: own.length > MAX_TEXT_CHARS ? "" : own,
      name: firstOf(voice, name).slice(0, MAX_TEXT_CHARS),
      labels: labelsOf(labels?.(isObject(entry) ? entry : { id: own }) ?? {}),
    };
  });
  return [...new Map(read.map((voice) => [voice.id, voice])).values()].filter((voice) => voice.id !== "");
}

/** `en_US`, `en-US` -> `en`, as voices of the vendor are labelled. */
export function languageOf(tag: unknown): string {
  return /^[A-Za-z]{2,3}(?=$|[-_])/.exec(textOf(tag))?.[0].toLowerCase() ?? "";
}

function firstOf(entry: Readonly<Record<string, unknown>>, fields: readonly string[]): string {
  return fields.map((field) => textOf(entry[field])).find((text) => text !== "") ?? "";
}

function labelsOf(values: Readonly<Record<string, unknown>>): Record<string, string> {
  const texts = Object.entries(values).map(([name, value]) => [name, textOf(value).slice(0, MAX_TEXT_CHARS)]);
  return Object.fromEntries(texts.filter(([, text]) => text !== "")) as Record<string, string>;
}
