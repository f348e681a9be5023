/**
 * The words of an utterance as they become known. The gateway sends a word when it knows its end; the characters come
 * as soon as they sound. A long word ("$1,234.56" takes four seconds) is shown from its characters until its own
 * event comes and takes its place.
 */
import type { CharactersEvent, Word } from "../../protocol/events.ts";

/** What is drawn of a word: fields that only others need are not made up here. */
export interface ShownWord extends Pick<Word, "text" | "start" | "end" | "start_ms" | "end_ms"> {
  /** Put together from characters; the gateway's own word is still to come. */
  readonly isProvisional?: true;
}

const SPEAKABLE = /[\p{L}\p{N}]/u;

/** Puts a word of the gateway's in its place; it drives out what was put together for it, and itself if it came before. */
export function addWord(words: ShownWord[], word: ShownWord): void {
  for (let index = words.length - 1; index >= 0; index -= 1) {
    const other = words[index];
    if (other === undefined || other.end < word.start) break;
    const isOverlapped = other.start < word.end && other.end > word.start;
    if (other.start === word.start || (other.isProvisional && isOverlapped)) words.splice(index, 1);
  }
  let place = words.length;
  while (place > 0 && (words[place - 1]?.start ?? 0) > word.start) place -= 1;
  words.splice(place, 0, word);
}

/**
 * Adds what characters alone show of words: runs between spaces that have a letter or a digit. What takes no time
 * is not said: tags, and what was taken out.
 */
export function addCharacters(words: ShownWord[], event: CharactersEvent): void {
  for (const run of runsOf(event)) {
    const last = words.at(-1);
    if (last !== undefined && run.start < last.end) continue;
    if (last?.isProvisional && last.end === run.start && run.start === event.start) {
      words[words.length - 1] = { ...last, text: last.text + run.text, end: run.end, end_ms: run.end_ms };
    } else if (SPEAKABLE.test(run.text) && run.end_ms > run.start_ms) words.push(run);
  }
}

function runsOf(event: CharactersEvent): ShownWord[] {
  const runs: ShownWord[] = [];
  let isInside = false;
  let offset = event.start;
  for (const [index, character] of event.characters.entries()) {
    const start = offset;
    offset += character.length;
    const start_ms = event.start_ms[index];
    const end_ms = event.end_ms[index];
    const isPart = character.trim() !== "" && start_ms !== undefined && end_ms !== undefined;
    const last = runs.at(-1);
    if (isPart && isInside && last !== undefined) {
      runs[runs.length - 1] = { ...last, text: last.text + character, end: offset, end_ms };
    } else if (isPart) {
      runs.push({ text: character, start, end: offset, start_ms, end_ms, isProvisional: true });
    }
    isInside = isPart;
  }
  return runs;
}
