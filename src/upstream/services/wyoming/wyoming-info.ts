/** What a Wyoming server says that it can do, read without trust. */
import { isObject, listOf, textOf } from "../json-values.ts";

export interface WyomingVoices {
  /** Empty: it lists none. */
  readonly names: readonly string[];
  /** Takes a text in pieces, and says when all of it was spoken. */
  readonly isStreaming: boolean;
}

/** Those of the program that has the voice, else of the first one; null: it has no voices at all. */
export function voicesOf(info: unknown, voice: string): WyomingVoices | null {
  const programs = listOf(isObject(info) ? info.tts : undefined).filter(isObject);
  const read = programs.map(({ voices, supports_synthesize_streaming: isStreaming }) => ({
    names: listOf(voices).flatMap((one) => (isObject(one) ? [textOf(one.name)] : [])),
    isStreaming: isStreaming === true,
  }));
  return read.find(({ names }) => names.includes(voice)) ?? read[0] ?? null;
}

/** Voices of all its programs that are there to be used. */
export function allVoicesOf(info: unknown): readonly unknown[] {
  const programs = listOf(isObject(info) ? info.tts : undefined).filter(isObject);
  return programs.flatMap(({ voices }) =>
    listOf(voices).filter((voice) => isObject(voice) && voice.installed !== false),
  );
}
