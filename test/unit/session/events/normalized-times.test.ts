/** `normalized` events of alignments with faults: they keep to the times that the text has after its mending. */
import { describe, expect, it } from "vitest";
import { overlapping, restarting, scaled } from "../../../../src/service/faults/alignment-changes.ts";
import type { AlignmentChange } from "../../../../src/service/faults/stage.ts";
import type { Alignment } from "../../../../src/timing/alignment.ts";
import { evenAlignment } from "../../../helpers/session-rig.ts";
import { CHAR_MS, spell, stage } from "../spelling.ts";

const TEXT = "the quick brown fox jumps over the lazy dog and then it runs away";
const CHUNK = 10;
const QUERY = "format=ulaw_8000&events=characters,normalized";

interface Faults {
  readonly alignment: AlignmentChange | null;
  readonly normalized: AlignmentChange | null;
}

interface Piece {
  readonly alignment: Alignment;
  readonly normalized: Alignment;
  readonly audio: Uint8Array;
}

/** Text that is spoken unchanged, in chunks. */
function plainPieces(text: string): Piece[] {
  return Array.from({ length: Math.ceil(text.length / CHUNK) }, (_, index) => {
    const piece = text.slice(index * CHUNK, (index + 1) * CHUNK);
    const alignment = evenAlignment(piece, CHAR_MS, index * CHUNK * CHAR_MS);
    return { alignment, normalized: alignment, audio: spell(piece) };
  });
}

/** `delayMs`: between the chunks, so that some is emitted before all has come. */
function spoken(text: string, pieces: readonly Piece[], faults: Faults, delayMs = 0) {
  const rig = stage(QUERY);
  rig.speak(text, "u");
  const [request] = rig.requests;
  request?.head();
  let audioStartSeconds = 0;
  pieces.forEach(({ alignment, normalized, audio }, chunk) => {
    const at = { chunk, audioStartSeconds } as Parameters<AlignmentChange>[1];
    request?.handlers.chunk({
      audio,
      alignment: faults.alignment === null ? alignment : faults.alignment(alignment, at),
      normalizedAlignment: faults.normalized === null ? normalized : faults.normalized(normalized, at),
      voiceSegments: [],
    });
    audioStartSeconds += audio.byteLength / 8000;
    rig.clock.advance(delayMs);
  });
  request?.handlers.end();
  rig.clock.advance(10_000);
  const flat = (type: "characters" | "normalized") =>
    rig.listener.eventsOf(type).flatMap((event) =>
      event.characters.map((character, index) => ({
        character,
        startMs: event.start_ms[index] ?? Number.NaN,
        endMs: event.end_ms[index] ?? Number.NaN,
        timing: event.timing,
      })),
    );
  const endMs = rig.listener.eventsOf("utterance.done")[0]?.end_ms ?? 0;
  return { characters: flat("characters"), normalized: flat("normalized"), endMs };
}

/** The last times reach so much beyond the audio. */
function long(seconds: number): AlignmentChange {
  return (alignment, { chunk }) => {
    if (chunk < Math.floor((TEXT.length - 1) / CHUNK)) return alignment;
    const stretch = (from: readonly number[]): number[] => {
      const first = alignment.character_start_times_seconds[0] ?? 0;
      const last = alignment.character_end_times_seconds.at(-1) ?? first;
      return from.map((at) => first + ((at - first) * (last + seconds - first)) / (last - first));
    };
    return {
      ...alignment,
      character_start_times_seconds: stretch(alignment.character_start_times_seconds),
      character_end_times_seconds: stretch(alignment.character_end_times_seconds),
    };
  };
}

const FAULTS: readonly (readonly [string, () => AlignmentChange | null])[] = [
  ["no fault", () => null],
  ["chunks that begin with the end of the one before", () => overlapping(3)],
  ["a clock that restarts with each chunk", () => restarting],
  ["times that run too slowly", () => scaled(1.1)],
  ["times that end behind the audio", () => long(1)],
];

describe("normalized events", () => {
  it.each(FAULTS)("are those of the text where nothing was normalized, with %s", (_, fault) => {
    for (const delayMs of [0, 400]) {
      const emitted = spoken(TEXT, plainPieces(TEXT), { alignment: fault(), normalized: fault() }, delayMs);
      expect(emitted.normalized.map(({ character }) => character).join("")).toBe(TEXT);
      for (const [index, { startMs, endMs }] of emitted.normalized.entries()) {
        expect(startMs).toBeCloseTo(emitted.characters[index]?.startMs ?? -1, 1);
        expect(endMs).toBeCloseTo(emitted.characters[index]?.endMs ?? -1, 1);
      }
      expect(emitted.normalized.at(-1)?.endMs).toBeLessThanOrEqual(emitted.endMs);
      expect(new Set(emitted.normalized.map(({ timing }) => timing))).toEqual(
        new Set(emitted.characters.map(({ timing }) => timing)),
      );
    }
  });

  it.each(FAULTS)("stay within what they stand for, with %s", (_, fault) => {
    const text = "the quick fox ate 12 hens on the way home in the dark";
    const said = text.replace("12", "twelve");
    const plain = plainPieces(text);
    const at = text.indexOf("12");
    const pieces = plain.map((piece, index): Piece => {
      const start = index * CHUNK;
      const chunkText = text.slice(start, start + CHUNK);
      if (!chunkText.includes("12")) return piece;
      const starts = piece.alignment.character_start_times_seconds;
      const characters = [...chunkText.replace("12", "twelve")];
      // Six letters in the time of two figures.
      const startOf = (index: number): number => {
        const number = at - start;
        if (index <= number) return starts[index] ?? 0;
        if (index < number + 6) return (starts[number] ?? 0) + ((index - number) * 2 * CHAR_MS) / 6000;
        return starts[index - 4] ?? (starts.at(-1) ?? 0) + CHAR_MS / 1000;
      };
      const normalized = {
        characters,
        character_start_times_seconds: characters.map((_, index) => startOf(index)),
        character_end_times_seconds: characters.map((_, index) => startOf(index + 1)),
      };
      return { ...piece, normalized };
    });
    const emitted = spoken(text, pieces, { alignment: fault(), normalized: fault() });
    expect(emitted.normalized.map(({ character }) => character).join("")).toBe(said);
    const number = emitted.normalized.slice(at, at + 6);
    const [one, two] = emitted.characters.slice(at, at + 2);
    expect(number[0]?.startMs).toBeCloseTo(one?.startMs ?? -1, 1);
    expect(number[3]?.startMs).toBeCloseTo(two?.startMs ?? -1, 1);
    expect(number[5]?.endMs).toBeCloseTo(two?.endMs ?? -1, 1);
    for (const [index, { startMs }] of emitted.normalized.slice(at + 6).entries()) {
      expect(startMs).toBeCloseTo(emitted.characters[at + 2 + index]?.startMs ?? -1, 1);
    }
  });

  it("rise and end with the audio where one time is far too high", () => {
    const broken: AlignmentChange = (alignment, { chunk }) => ({
      ...alignment,
      character_start_times_seconds: alignment.character_start_times_seconds.map((seconds, index) =>
        chunk === 1 && index === 4 ? 1e6 : seconds,
      ),
    });
    const emitted = spoken(TEXT, plainPieces(TEXT), { alignment: broken, normalized: null });
    expect(emitted.normalized.map(({ character }) => character).join("")).toBe(TEXT);
    for (const [index, { startMs }] of emitted.normalized.entries()) {
      expect(Math.abs(startMs - (emitted.characters[index]?.startMs ?? 0))).toBeLessThan(CHAR_MS);
    }
  });
});
