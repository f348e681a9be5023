/** From drafts to what is told: characters where they are heard, times that rise, and one time for each character. */
import type { Timing } from "../protocol/vocabulary.ts";
import { charactersOf, type Draft, speechWeight } from "./draft.ts";
import type { HeardText } from "./estimate/aligned-text.ts";
import { weaker } from "./timed.ts";

/** Characters that were moved and are no further apart than this meet: no one hears what lies between. */
export const JOIN_SECONDS = 0.005;
/** Rounding on the wire: repairs below it leave the label as it is. */
export const EXACT_SECONDS = 0.0015;

/** Text character by character, at the times at which it is heard. `text`: from `textFrom` on. */
export function draftsOf(
  drafts: readonly Pick<Draft, "end" | "timing">[],
  heard: HeardText,
  { text, textFrom }: { readonly text: string; readonly textFrom: number },
): Draft[] {
  let at = 0;
  return drafts.flatMap(({ end, timing }) =>
    charactersOf(text.slice(at, end - textFrom)).map((character) => {
      const startSeconds = heard.secondsAt(at);
      at += character.length;
      const isSpace = character.trim() === "";
      return {
        end: textFrom + at,
        startSeconds,
        endSeconds: heard.secondsAt(at),
        // White space has nothing to be wrong about.
        timing: isSpace ? timing : "estimated",
      };
    }),
  );
}

/** Makes a draft rise from the one before it and end before the next starts; returns its label. */
export function settle(
  draft: Draft,
  before: { readonly end: number; readonly timing: Timing },
  nextStart: number,
): Timing {
  // An end that was guessed at the end of the audio that had come is short of it by what an encoder held back.
  const behindSeconds = before.timing === "exact" ? 0 : EXACT_SECONDS;
  const joinSeconds = draft.timing === "exact" ? behindSeconds : JOIN_SECONDS;
  const isJoined = draft.startSeconds - before.end <= joinSeconds;
  const start = isJoined ? before.end : draft.startSeconds;
  const end = Math.max(start, Math.min(draft.endSeconds, nextStart));
  const moved = Math.max(Math.abs(start - draft.startSeconds), Math.abs(end - draft.endSeconds));
  if (moved > EXACT_SECONDS) draft.timing = weaker(draft.timing, "scaled");
  draft.startSeconds = start;
  draft.endSeconds = end;
  return draft.timing;
}

interface Part {
  readonly text: string;
  readonly startSeconds: number;
  readonly endSeconds: number;
}

/** One draft's time over its characters. */
export function divide(draft: Draft, parts: readonly string[]): Part[] {
  const [only] = parts;
  const { startSeconds, endSeconds } = draft;
  if (only !== undefined && parts.length === 1) return [{ text: only, startSeconds, endSeconds }];
  const total = parts.reduce((sum, part) => sum + speechWeight(part), 0) || 1;
  let said = 0;
  return parts.map((text) => {
    const start = startSeconds + ((endSeconds - startSeconds) * said) / total;
    said += speechWeight(text);
    return {
      text,
      startSeconds: start,
      endSeconds: startSeconds + ((endSeconds - startSeconds) * said) / total,
    };
  });
}
