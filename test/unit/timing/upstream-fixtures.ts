/** Alignments as an upstream sends them, and the ways in which they go wrong. */
import type { Alignment } from "../../../src/timing/alignment.ts";
import { responseTimesOf } from "../../../src/timing/response-times-of.ts";
import type { TimedCharacters } from "../../../src/timing/timed.ts";

export const CHARACTER_SECONDS = 0.1;

/** Each character (code point, or element of the array) lasts 0.1 s, from `fromSeconds` on. */
export function alignmentOf(
  text: string | readonly string[],
  fromSeconds = 0,
  step = CHARACTER_SECONDS,
): Alignment {
  const characters = typeof text === "string" ? [...text] : text;
  const time = (count: number): number => Math.round((fromSeconds + count * step) * 1e6) / 1e6;
  return {
    characters,
    character_start_times_seconds: characters.map((_, index) => time(index)),
    character_end_times_seconds: characters.map((_, index) => time(index + 1)),
  };
}

export interface Chunk {
  readonly alignment: Alignment | null;
  /** End of its audio in the response. */
  readonly audioSeconds: number;
}

/** A response of these chunks: what each of them says, and its end. */
export function run(text: string, chunks: readonly Chunk[], audioSeconds: number) {
  const timing = responseTimesOf({ text });
  const emitted = chunks.map((chunk) =>
    timing.push(chunk.alignment, null, { audioSeconds: chunk.audioSeconds }),
  );
  return [...emitted, timing.finish(audioSeconds)];
}

/** "abc", "def", "ghi": 0.3 s each as they are heard, their times `factor` times that. */
export function scaledChunks(factor: number): Chunk[] {
  return ["abc", "def", "ghi"].map((text, i) => ({
    alignment: alignmentOf(text, 0.3 * i * factor, 0.1 * factor),
    audioSeconds: 0.3 * (i + 1),
  }));
}

/** "H0.00 e0.10": characters with their starts, for comparing at a glance. */
export function startsOf(timed: TimedCharacters | null): string {
  if (timed === null) return "";
  return timed.characters
    .map((character, i) => `${character}${(timed.startSeconds[i] ?? 0).toFixed(2)}`)
    .join(" ");
}

/** What must hold for all that a segment gives, whatever the upstream sent. Returns the problem, or "". */
export function problemWith(
  all: readonly (TimedCharacters | null)[],
  facts: { readonly text: string; readonly audioSeconds?: number },
): string {
  let at = 0;
  let last = 0;
  for (const timed of all) {
    if (timed === null) continue;
    if (timed.start !== at) return `hole or overlap at ${at}: next starts at ${timed.start}`;
    const shown = facts.text.slice(timed.start, timed.end);
    if (timed.characters.join("") !== shown)
      return `characters ${timed.characters.join("")} are not ${shown}`;
    if (timed.startSeconds.length !== timed.characters.length) return "lengths differ";
    if (timed.endSeconds.length !== timed.characters.length) return "lengths differ";
    for (const [i, start] of timed.startSeconds.entries()) {
      const end = timed.endSeconds[i] ?? Number.NaN;
      if (!(start >= last - 1e-9 && end >= start)) return `goes back at ${at}: ${last} ${start} ${end}`;
      last = end;
    }
    at = timed.end;
  }
  const limit = facts.audioSeconds ?? Number.POSITIVE_INFINITY;
  return last > limit + 1e-9 ? `ends at ${last}, behind the audio's end at ${limit}` : "";
}
