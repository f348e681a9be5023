/** What each fault makes of one chunk's alignment. */
import type { Alignment } from "../../timing/alignment.ts";
import { type AlignmentChange, mapTimes } from "./stage.ts";

/** Null in every n-th chunk, the first one among them. */
export function missing(every: number): AlignmentChange {
  return (alignment, { chunk }) => (chunk % every === 0 ? null : alignment);
}

/** Begins with the last characters of the chunk before. */
export function overlapping(characters: number): AlignmentChange {
  let before: Alignment | null = null;
  return (alignment) => {
    const tail = before === null ? null : slice(before, -characters);
    before = alignment;
    return tail === null ? alignment : join(tail, alignment);
  };
}

/** Counts from the start of the chunk's audio instead of the response's. */
export const restarting: AlignmentChange = (alignment, { audioStartSeconds }) =>
  mapTimes(alignment, (seconds) => round(Math.max(0, seconds - audioStartSeconds)));

export function scaled(factor: number): AlignmentChange {
  return (alignment) => mapTimes(alignment, (seconds) => round(seconds * factor));
}

/** One of the two arrays of times lacks its last items: starts and ends in turn. */
export function ragged(drop: number): AlignmentChange {
  return (alignment, { chunk }) => {
    const field = chunk % 2 === 0 ? "character_end_times_seconds" : "character_start_times_seconds";
    return { ...alignment, [field]: alignment[field].slice(0, -drop) };
  };
}

/** Every n-th character has no number (null on the wire) for its start, its end or both, in turn. */
export function holed(every: number): AlignmentChange {
  const hole = (isHit: (turn: number) => boolean) => (seconds: number, index: number) =>
    index % every === every - 1 && isHit(Math.floor(index / every) % 3) ? Number.NaN : seconds;
  return (alignment) => ({
    ...alignment,
    character_start_times_seconds: alignment.character_start_times_seconds.map(hole((turn) => turn !== 1)),
    character_end_times_seconds: alignment.character_end_times_seconds.map(hole((turn) => turn !== 0)),
  });
}

function slice(alignment: Alignment, from: number): Alignment {
  return {
    characters: alignment.characters.slice(from),
    character_start_times_seconds: alignment.character_start_times_seconds.slice(from),
    character_end_times_seconds: alignment.character_end_times_seconds.slice(from),
  };
}

function join(a: Alignment, b: Alignment): Alignment {
  return {
    characters: [...a.characters, ...b.characters],
    character_start_times_seconds: [...a.character_start_times_seconds, ...b.character_start_times_seconds],
    character_end_times_seconds: [...a.character_end_times_seconds, ...b.character_end_times_seconds],
  };
}

/** As the voice rounds: to 0.1 ms. */
function round(seconds: number): number {
  return Math.round(seconds * 10_000) / 10_000;
}
