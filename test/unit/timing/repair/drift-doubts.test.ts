/** A rate that is not that of the audio, where times are late or missing besides, or audio is cut inside of words. */
import { describe, expect, it } from "vitest";
import type { TimedCharacters } from "../../../../src/timing/timed.ts";
import { alignmentOf, type Chunk, problemWith, run, scaledChunks, startsOf } from "../upstream-fixtures.ts";

describe("a rate that is not that of the audio, and times besides that are late or missing", () => {
  const starts = (emitted: readonly (TimedCharacters | null)[]) =>
    emitted.flatMap((one) => one?.startSeconds ?? []);

  it.each([0.9, 0.95, 1.05, 1.1])("%d: times that come two chunks late", (factor) => {
    const alignments = [null, null, ...scaledChunks(factor).map(({ alignment }) => alignment)];
    const audioSeconds = [0.3, 0.6, 0.9, 0.9, 0.9];
    const chunks = alignments.map((alignment, i) => ({ alignment, audioSeconds: audioSeconds[i] ?? 0.9 }));
    const emitted = run("abcdefghi", chunks, 0.9);
    expect(starts(emitted)).toHaveLength(9);
    for (const [index, seconds] of starts(emitted).entries()) expect(seconds).toBeCloseTo(index / 10, 6);
    expect(emitted.every((one) => one === null || one.timing === "scaled")).toBe(true);
  });

  it.each([0.9, 0.95, 1.05, 1.1])("%d: times that are missing in every second chunk", (factor) => {
    const text = "abcdefghijklmnopqrstuvwxyzABCDEF";
    const chunks = Array.from({ length: 8 }, (_, i) => ({
      alignment:
        i % 2 === 0 ? null : alignmentOf(text.slice(4 * i, 4 * i + 4), 0.4 * i * factor, 0.1 * factor),
      audioSeconds: 0.4 * (i + 1),
    }));
    const emitted = run(text, chunks, 3.2);
    const all = starts(emitted);
    // From the second one on that has times, all of those are known; the first was emitted when more audio came.
    for (const index of [12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31]) {
      expect(all[index]).toBeCloseTo(index / 10, 3);
    }
    for (const one of emitted) if (one !== null && one.start < 4) expect(one.timing).toBe("estimated");
  });

  it("a clock at another rate that starts again early on is placed with its audio, as a guess", () => {
    // 0.3, 0.4 and 0.5 s of audio.
    const chunks = ["abc", "defg", "hijkl"].map((text, i) => ({
      alignment: alignmentOf(text, 0, 0.11),
      audioSeconds: [0.3, 0.7, 1.2][i] ?? 1.2,
    }));
    const emitted = run("abcdefghijkl", chunks, 1.2);
    for (const [index, seconds] of starts(emitted).entries()) {
      expect(Math.abs(seconds - index / 10)).toBeLessThan(0.071);
    }
    for (const one of emitted) if (one !== null && one.end > 3) expect(one.timing).toBe("estimated");
  });

  it("a last chunk that is doubted stands where the known rate puts it", () => {
    const last = { alignment: alignmentOf("xyz", 0.9 * 0.8, 0.05 * 0.8), audioSeconds: 1.2 };
    const emitted = run("abcdefghixyz", [...scaledChunks(0.8), last], 1.2);
    expect(starts(emitted).slice(9)).toEqual([
      expect.closeTo(0.9, 6),
      expect.closeTo(0.95, 6),
      expect.closeTo(1, 6),
    ]);
  });
});

describe("times that come with the first piece of their audio", () => {
  const TEXT = "abcdefghijklmnopqrst";
  const COUNTS = [3, 5, 4, 6, 2];

  /** Each chunk's characters last 0.1 s; its audio comes in pieces of `pieceSeconds`, its times with the first of them. */
  function inPieces(factor: number, pieceSeconds: number): Chunk[] {
    let at = 0;
    return COUNTS.flatMap((count) => {
      const [from, to] = [0.1 * at, 0.1 * (at + count)];
      const alignment = alignmentOf(TEXT.slice(at, at + count), from * factor, 0.1 * factor);
      at += count;
      return Array.from({ length: Math.ceil((to - from) / pieceSeconds - 1e-9) }, (_, i) => ({
        alignment: i === 0 ? alignment : null,
        audioSeconds: Math.min(to, from + (i + 1) * pieceSeconds),
      }));
    });
  }

  function check(factor: number, pieceSeconds: number, timing: string): void {
    const emitted = run(TEXT, inPieces(factor, pieceSeconds), 2);
    expect(problemWith(emitted, { text: TEXT, audioSeconds: 2 })).toBe("");
    const given = emitted.filter((one) => one !== null);
    for (const one of given) {
      for (const [i, seconds] of one.startSeconds.entries()) {
        expect(Math.abs(seconds - (one.start + i) / 10), `${factor} ${pieceSeconds}`).toBeLessThan(0.01);
      }
    }
    expect(given.map((one) => one.timing)).toEqual(given.map(() => timing));
  }

  const PIECES = [0.01, 0.02, 0.05, 0.08, 0.13, 0.2] as const;

  it.each([0.7, 0.8, 0.9, 0.95, 1.05, 1.1, 1.2, 1.4])(
    "%d of the rate: none is emitted at its own",
    (factor) => {
      for (const pieceSeconds of PIECES) check(factor, pieceSeconds, "scaled");
    },
  );

  it("at the rate of the audio: exact", () => {
    for (const pieceSeconds of PIECES) check(1, pieceSeconds, "exact");
  });

  it("a first piece that ends with its times by chance: the rate is found when the rest has come", () => {
    const emitted = run(TEXT, inPieces(0.7, 0.21), 2).filter((one) => one !== null);
    expect(emitted[0]?.timing).toBe("exact");
    for (const one of emitted.slice(1)) {
      expect(one.timing).not.toBe("exact");
      expect(Math.abs((one.startSeconds[0] ?? 0) - one.start / 10)).toBeLessThan(0.15);
    }
  });
});

describe("audio that is cut without regard to words", () => {
  /** A second a chunk; characters of 0.06 to 0.1 s go with the audio that they begin in. */
  function cutAnywhere(factor: number): {
    readonly text: string;
    readonly chunks: Chunk[];
    readonly trueStarts: number[];
  } {
    const text = String.fromCharCode(...Array.from({ length: 60 }, (_, i) => 0x3042 + i));
    const ends: number[] = [];
    for (const [i] of [...text].entries()) ends.push((ends.at(-1) ?? 0) + 0.06 + 0.01 * ((i * 3) % 5));
    const trueStarts = [0, ...ends.slice(0, -1)];
    const lastSeconds = ends.at(-1) ?? 0;
    const chunks = Array.from({ length: Math.ceil(lastSeconds) }, (_, k) => {
      const inChunk = trueStarts.flatMap((start, i) => (start >= k && start < k + 1 ? [i] : []));
      const alignment = {
        characters: inChunk.map((i) => text.charAt(i)),
        character_start_times_seconds: inChunk.map((i) => (trueStarts[i] ?? 0) * factor),
        character_end_times_seconds: inChunk.map((i) => (ends[i] ?? 0) * factor),
      };
      return { alignment, audioSeconds: Math.min(k + 1, lastSeconds) };
    });
    return { text, chunks, trueStarts };
  }

  it("steady times wait for one chunk more, and are exact", () => {
    const { text, chunks } = cutAnywhere(1);
    const emitted = run(text, chunks, chunks.at(-1)?.audioSeconds ?? 0);
    expect(emitted[0]).toBeNull();
    expect(emitted[1]?.start).toBe(0);
    expect(emitted.every((one) => one === null || one.timing === "exact")).toBe(true);
  });

  it.each([0.8, 0.9, 0.95, 1.05, 1.1, 1.2])(
    "%d: is nearly right, and no more than an estimate until it is known",
    (factor) => {
      const { text, chunks, trueStarts } = cutAnywhere(factor);
      const emitted = run(text, chunks, chunks.at(-1)?.audioSeconds ?? 0);
      expect(problemWith(emitted, { text })).toBe("");
      for (const one of emitted) {
        if (one === null) continue;
        for (const [i, start] of one.startSeconds.entries()) {
          const errorSeconds = Math.abs(start - (trueStarts[one.start + i] ?? Number.NaN));
          expect(errorSeconds).toBeLessThanOrEqual(one.timing === "estimated" ? 0.15 : 0.02);
        }
      }
    },
  );

  it("steady times of characters that go with the audio that they end in stay as they are", () => {
    const { text, chunks, trueStarts } = cutAnywhere(1);
    const all = chunks.flatMap(({ alignment }) =>
      (alignment?.character_end_times_seconds ?? []).map((end, i) => ({
        character: alignment?.characters[i] ?? "",
        start: alignment?.character_start_times_seconds[i] ?? Number.NaN,
        end,
      })),
    );
    const moved = chunks.map(({ audioSeconds }, k) => {
      const isHere = (end: number) =>
        end <= audioSeconds + 1e-9 && (k === 0 || end > (chunks[k - 1]?.audioSeconds ?? 0) + 1e-9);
      const here = all.filter(({ end }) => isHere(end));
      const alignment = {
        characters: here.map(({ character }) => character),
        character_start_times_seconds: here.map(({ start }) => start),
        character_end_times_seconds: here.map(({ end }) => end),
      };
      return { alignment, audioSeconds };
    });
    const emitted = run(text, moved, chunks.at(-1)?.audioSeconds ?? 0);
    const starts = emitted.flatMap((one) => one?.startSeconds ?? []);
    expect(starts).toHaveLength(trueStarts.length);
    for (const [index, seconds] of starts.entries())
      expect(seconds).toBeCloseTo(trueStarts[index] ?? Number.NaN, 6);
  });

  it("a character whose end was guessed at the end of its audio proves nothing", () => {
    const [first, second, third] = scaledChunks(1.1);
    if (first?.alignment == null) throw new Error("No chunk");
    const open = {
      ...first.alignment,
      character_end_times_seconds: first.alignment.character_end_times_seconds.slice(0, 2),
    };
    const chunks = [{ ...first, alignment: open }, second, third].filter((chunk) => chunk !== undefined);
    const emitted = run("abcdefghi", chunks, 0.9);
    expect(emitted[0]?.timing).toBe("estimated");
    expect(startsOf(emitted[2] ?? null)).toContain("g0.60 h0.70 i0.80");
  });
});
