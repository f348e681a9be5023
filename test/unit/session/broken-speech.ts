/** What a client makes of speech that broke off and was recovered, held against what was to be said. */
import { expect } from "vitest";
import { type ErrorCode, GatewayError } from "../../../src/errors.ts";
import type { Word } from "../../../src/protocol/events.ts";
import type { MemoryListener } from "../../helpers/memory-listener.ts";
import { heardOf, letterAt, read, type stage } from "./spelling.ts";

export const TEXT = "abc defg, hij klmno pq.";
export const BROKE = (code: ErrorCode = "upstream_truncated") =>
  new GatewayError(code, "Upstream ended early");

export type Stage = ReturnType<typeof stage>;

/** Words as a client keeps them: what a `speech_recovered` makes void is dropped. */
export function wordsOf(listener: MemoryListener): Word[] {
  let words: Word[] = [];
  for (const event of listener.events) {
    if (event.type === "words") words.push(...event.words);
    if (event.type === "warning" && event.start !== undefined) {
      const { start } = event;
      words = words.filter((word) => word.start < start);
    }
  }
  return words;
}

/** Characters as a client keeps them. */
export function charactersOf(listener: MemoryListener): { readonly start: number; readonly text: string }[] {
  let characters: { readonly start: number; readonly text: string }[] = [];
  for (const event of listener.events) {
    if (event.type === "characters") {
      let start = event.start;
      for (const text of event.characters) {
        characters.push({ start, text });
        start += text.length;
      }
    }
    if (event.type === "warning" && event.start !== undefined) {
      const { start } = event;
      characters = characters.filter((character) => character.start < start);
    }
  }
  return characters;
}

export function audioOf(listener: MemoryListener): string {
  return heardOf(listener)
    .map((stretch) => read(stretch.audio))
    .join("");
}

/** Each word stands in the text where it says, and sounds where it says. */
export function expectTrue(listener: MemoryListener, text: string): void {
  const words = wordsOf(listener);
  expect(words.map((word) => word.text)).toEqual(text.match(/[a-z]+/g));
  const starts = words.map((word) => word.start);
  expect(starts).toEqual([...starts].sort((a, b) => a - b));
  for (const word of words) {
    expect(text.slice(word.start, word.end)).toBe(word.text);
    expect(letterAt(heardOf(listener), word.start_ms)).toBe(word.text[0]);
  }
  const times = words.flatMap((word) => [word.start_ms, word.end_ms]);
  expect(times).toEqual([...times].sort((a, b) => a - b));
}

export function breakOff(rig: Stage, index: number, code?: ErrorCode): void {
  const request = rig.requests[index];
  if (request === undefined) throw new Error(`No request ${index} was made`);
  request.handlers.error(BROKE(code));
}

/** What was heard of a text where parts of words may be heard before the whole word. */
export function expectHeard(listener: MemoryListener, text: string): void {
  const words = text.match(/[a-z]+/g) ?? [];
  const isHeard = new RegExp(`^${words.map((word) => `(?:${partsOf(word)})*${word}`).join("")}$`);
  expect(audioOf(listener)).toMatch(isHeard);
}

function partsOf(word: string): string {
  return Array.from(word, (_, at) => word.slice(0, word.length - at)).join("|");
}
