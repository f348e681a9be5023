/** Times that run at another rate than their audio, that count from their chunk, or that reach beyond the audio. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { responseTimesOf } from "../../../../src/timing/response-times-of.ts";
import type { TimedCharacters } from "../../../../src/timing/timed.ts";
import { alignmentOf, type Chunk, problemWith, run, scaledChunks, startsOf } from "../upstream-fixtures.ts";

const shown = (emitted: readonly (TimedCharacters | null)[]) => emitted.map(startsOf);

describe("a rate that is not that of the audio", () => {
  it.each([0.1, 0.5, 0.9, 1.1, 1.2, 3, 10])(
    "%d: the first chunk waits for the second, then all is as heard",
    (factor) => {
      const emitted = run("abcdefghi", scaledChunks(factor), 0.9);
      expect(shown(emitted)).toEqual(["", "a0.00 b0.10 c0.20 d0.30 e0.40 f0.50", "g0.60 h0.70 i0.80", ""]);
      expect(emitted.map((one) => one?.timing)).toEqual([undefined, "scaled", "scaled", undefined]);
    },
  );

  it.each([0.9, 1.1])(
    "%d: to the sample, though an encoder holds back some of each chunk's audio",
    (factor) => {
      const heldBack = scaledChunks(factor).map((chunk) => ({
        ...chunk,
        audioSeconds: chunk.audioSeconds - 0.00125,
      }));
      const emitted = run("abcdefghi", heldBack, 0.9);
      const starts = emitted.flatMap((one) => one?.startSeconds ?? []);
      expect(starts).toHaveLength(9);
      for (const [index, seconds] of starts.entries()) expect(seconds).toBeCloseTo(index / 10, 6);
      expect(emitted.findLast((one) => one !== null)?.endSeconds.at(-1)).toBeCloseTo(0.9, 6);
    },
  );

  it("steady times are emitted at once, exact", () => {
    const emitted = run("abcdefghi", scaledChunks(1), 0.9);
    expect(shown(emitted)).toEqual(["a0.00 b0.10 c0.20", "d0.30 e0.40 f0.50", "g0.60 h0.70 i0.80", ""]);
    expect(emitted[2]?.timing).toBe("exact");
  });

  it("times a little ahead of their audio are no drift: they stay as they are", () => {
    const chunks = [
      { alignment: alignmentOf("abc", 0.04), audioSeconds: 0.3 },
      { alignment: alignmentOf("def", 0.34), audioSeconds: 0.6 },
      { alignment: null, audioSeconds: 1 },
    ];
    const emitted = run("abcdef", chunks, 1);
    expect(shown(emitted).join(" ").trim()).toBe("a0.04 b0.14 c0.24 d0.34 e0.44 f0.54");
    expect(emitted.every((one) => one === null || one.timing === "exact")).toBe(true);
  });

  it("one chunk alone proves nothing: it is emitted unchanged, as an estimate, when more audio comes", () => {
    const [first] = scaledChunks(1.1);
    if (first === undefined) throw new Error("No chunk");
    const emitted = run("abcdef", [first, { alignment: null, audioSeconds: 1.4 }], 1.4);
    expect(emitted[0]).toBeNull();
    expect(startsOf(emitted[1] ?? null)).toBe("a0.00 b0.11 c0.22");
    expect(emitted[1]?.timing).toBe("estimated");
  });

  /** Five times 0.3 s; each character 0.1 s as it is heard, but the chunks' texts end where `lengths` say. */
  function spanningChunks(factor: number, lengths: readonly number[]): Chunk[] {
    const text = "abcdefghijklmno";
    let at = 0;
    return lengths.map((length, i) => {
      const from = at;
      at += length;
      return {
        alignment: alignmentOf(text.slice(from, at), 0.1 * from * factor, 0.1 * factor),
        audioSeconds: 0.3 * (i + 1),
      };
    });
  }

  it.each([0.5, 0.9, 1.1, 3])("%d: is seen though words go on in the next chunk", (factor) => {
    for (const lengths of [
      [3, 3, 5, 1, 3],
      [5, 1, 3, 3, 3],
      [3, 5, 1, 3, 3],
      [4, 2, 3, 3, 3],
      [3, 3, 3, 4, 2],
    ]) {
      const emitted = run("abcdefghijklmno", spanningChunks(factor, lengths), 1.5);
      const starts = emitted.flatMap((one) => one?.startSeconds ?? []);
      expect(starts).toHaveLength(15);
      for (const [index, seconds] of starts.entries()) expect(seconds).toBeCloseTo(index / 10, 3);
      expect(emitted.every((one) => one === null || one.timing === "scaled")).toBe(true);
      expect(emitted.findLast((one) => one !== null)?.endSeconds.at(-1)).toBeLessThanOrEqual(1.5 + 1e-9);
    }
  });

  it("any rate and any cuts: once two chunks have shown it, all is as heard", () => {
    const lengths = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 12 });
    const lateness = fc.array(fc.integer({ min: 0, max: 6 }), { minLength: 12, maxLength: 12 });
    const factors = fc.constantFrom(0.1, 0.4, 0.75, 0.9, 1.05, 1.1, 1.25, 1.6, 4, 10);
    fc.assert(
      fc.property(factors, lengths, lateness, (factor, more, late) => {
        const count = 20 + more.reduce((sum, length) => sum + length, 0);
        const text = String.fromCharCode(...Array.from({ length: count }, (_, i) => 0x4e00 + i));
        const timing = responseTimesOf({ text });
        const emitted: (TimedCharacters | null)[] = [];
        let [audioTo, textTo] = [0, 0];
        for (const [i, length] of [10, 10, ...more].entries()) {
          audioTo += length;
          // A word that the chunk's audio cuts: its characters come with where it begins. By chance such a chunk may
          // look as if it had ended with its audio.
          const cutTo = Math.min(text.length, audioTo + (i > 1 ? (late[i - 2] ?? 0) : 0));
          const isChance = Math.abs(cutTo * factor - audioTo) < 0.1;
          const to = Math.max(textTo, isChance ? audioTo : cutTo);
          if (to > textTo) {
            const alignment = alignmentOf(text.slice(textTo, to), 0.1 * textTo * factor, 0.1 * factor);
            emitted.push(timing.push(alignment, null, { audioSeconds: audioTo / 10 }));
          } else emitted.push(timing.push(null, null, { audioSeconds: audioTo / 10 }));
          textTo = to;
        }
        emitted.push(timing.finish(text.length / 10));
        expect(problemWith(emitted, { text, audioSeconds: text.length / 10 })).toBe("");
        const starts = emitted.flatMap((one) => one?.startSeconds ?? []);
        for (const [index, seconds] of starts.entries()) expect(seconds).toBeCloseTo(index / 10, 2);
        expect(emitted.every((one) => one === null || one.timing === "scaled")).toBe(true);
      }),
      {
        numRuns: 100,
        // The chunks between those that show it end elsewhere: it was a guess again.
        examples: [[0.1, [1, 5, 1], [5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]]],
      },
    );
  });

  it("steady times whose first words go on in the next chunk are exact", () => {
    const emitted = run("abcdefghijklmno", spanningChunks(1, [5, 2, 2, 3, 3]), 1.5);
    expect(shown(emitted).join(" ").trim().split(" ")[14]).toBe("o1.40");
    expect(emitted.every((one) => one === null || one.timing === "exact")).toBe(true);
  });

  it("times that come late are emitted at once, exact", () => {
    const [first, second, third] = scaledChunks(1);
    const chunks = [
      { alignment: null, audioSeconds: 0.3 },
      { alignment: first?.alignment ?? null, audioSeconds: 0.6 },
      { alignment: second?.alignment ?? null, audioSeconds: 0.9 },
      { alignment: third?.alignment ?? null, audioSeconds: 0.9 },
    ];
    const emitted = run("abcdefghi", chunks, 0.9);
    expect(shown(emitted).slice(1)).toEqual([
      "a0.00 b0.10 c0.20",
      "d0.30 e0.40 f0.50",
      "g0.60 h0.70 i0.80",
      "",
    ]);
    expect(emitted.every((one) => one === null || one.timing === "exact")).toBe(true);
  });

  it("one chunk that ends longer before its audio than silence lasts is no more than a guess", () => {
    for (const [audioSeconds, label] of [
      [0.7, "exact"],
      [0.9, "estimated"],
    ] as const) {
      const emitted = run("abc", [{ alignment: alignmentOf("abc"), audioSeconds }], audioSeconds);
      expect(shown(emitted)).toEqual(["", "a0.00 b0.10 c0.20"]);
      expect(emitted[1]?.timing).toBe(label);
    }
  });

  it.each([
    ["is silent", 0.3, "exact"],
    ["sounds on", 0.45, "estimated"],
    ["may do either", 0, "exact"],
  ])("one chunk that ends before its audio, which %s there", (_, soundSeconds, label) => {
    const timing = responseTimesOf({ text: "abc" });
    expect(timing.push(alignmentOf("abc"), null, { audioSeconds: 0.5 })).toBeNull();
    expect(timing.finish(0.5, soundSeconds)?.timing).toBe(label);
  });

  it("audio that is held back in pages says nothing of the rate where the times end with all of it", () => {
    const texts = ["abc", "defgh"];
    const late = [
      { alignment: alignmentOf("abc"), audioSeconds: 0.21 },
      { alignment: alignmentOf("defgh", 0.3), audioSeconds: 0.71 },
      { alignment: null, audioSeconds: 0.8 },
    ];
    const emitted = run(texts.join(""), late, 0.8);
    expect(shown(emitted).join("")).toBe("a0.00 b0.10 c0.20 d0.30 e0.40 f0.50 g0.60 h0.70");
    expect(emitted.findLast((one) => one !== null)?.timing).toBe("exact");
  });

  it("a rate that ends: estimated from there on", () => {
    const later = [4, 5, 6].map((i) => ({
      alignment: alignmentOf("xyz", 0.3 * i),
      audioSeconds: 0.3 * (i + 1),
    }));
    const emitted = run("abcdefghixyzxyzxyz", [...scaledChunks(0.8), ...later], 2.1);
    expect(problemWith(emitted, { text: "abcdefghixyzxyzxyz", audioSeconds: 2.1 })).toBe("");
    for (const one of emitted)
      expect(one?.timing ?? "").toBe(one === null ? "" : one.start < 9 ? "scaled" : "estimated");
  });
});

describe("times that count from their chunk", () => {
  /** "ab", "cd", "ef": 0.2 s each; `audioSeconds`: where the audio of each ends. */
  const counted = (...audioSeconds: readonly number[]) => {
    const texts = ["ab", "cd", "ef"];
    const chunks = audioSeconds.map((seconds, i) => ({
      alignment: alignmentOf(texts[i] ?? ""),
      audioSeconds: seconds,
    }));
    return run("abcdef", chunks, 0.6);
  };

  it("are seen from the second chunk on, however short the first", () => {
    expect(shown(counted(0.2, 0.4, 0.6))).toEqual(["a0.00 b0.10", "c0.20 d0.30", "e0.40 f0.50", ""]);
  });

  it("begin where those before them ended, though an encoder holds back some of each chunk's audio", () => {
    const emitted = counted(0.19875, 0.39875, 0.6);
    const starts = emitted.flatMap((one) => one?.startSeconds ?? []);
    expect(starts).toHaveLength(6);
    for (const [index, seconds] of starts.entries()) expect(seconds).toBeCloseTo(index / 10, 9);
    expect(emitted[2]?.endSeconds.at(-1)).toBeCloseTo(0.6, 9);
  });

  it("are seen though words go on in the next chunk, and though the rest of a chunk's audio comes behind it", () => {
    // Chunks of 0.4 s; the texts of the first and the third reach 0.2 s beyond.
    const [texts, from] = [
      ["abcdef", "gh", "ijklmn", "op"],
      [0, 0.2, 0, 0.2],
    ];
    for (const firstPieceSeconds of [0.4, 0.01]) {
      const chunks = texts.flatMap((text, i) => [
        { alignment: alignmentOf(text, from[i] ?? 0), audioSeconds: 0.4 * i + firstPieceSeconds },
        { alignment: null, audioSeconds: 0.4 * (i + 1) },
      ]);
      const emitted = run("abcdefghijklmnop", chunks, 1.6);
      const starts = emitted.flatMap((one) => one?.startSeconds ?? []);
      expect(starts).toHaveLength(16);
      for (const [index, seconds] of starts.entries()) expect(seconds).toBeCloseTo(index / 10, 6);
    }
  });

  it("are an estimate where they don't end with their audio", () => {
    for (const [step, label] of [
      [0.1, "scaled"],
      [0.12, "estimated"],
      [0.08, "estimated"],
    ] as const) {
      const timing = responseTimesOf({ text: "abcdefghijklmnopqrst" });
      timing.push(alignmentOf("abcdefghij"), null, { audioSeconds: 1 });
      const emitted =
        timing.push(alignmentOf("klmnopqrst", 0, step), null, { audioSeconds: 2 }) ?? timing.finish(2);
      expect(emitted?.timing).toBe(label);
    }
  });

  it("that are all cut off at zero are none", () => {
    const none = {
      ...alignmentOf("klm"),
      character_start_times_seconds: [0, 0, 0],
      character_end_times_seconds: [0, 0, 0],
    };
    const chunks = [
      { alignment: alignmentOf("abcdefghij"), audioSeconds: 1 },
      { alignment: none, audioSeconds: 1.3 },
      { alignment: alignmentOf("nop", 1.3), audioSeconds: 1.6 },
    ];
    const emitted = run("abcdefghijklmnop", chunks, 1.6);
    const starts = emitted.flatMap((one) => one?.startSeconds ?? []);
    for (const [index, seconds] of starts.entries())
      expect(Math.abs(seconds - index / 10)).toBeLessThanOrEqual(0.05);
    expect(emitted.find((one) => one !== null && one.end > 10)?.timing).toBe("estimated");
  });

  it("stay within their chunk's audio, where they run at another rate besides", () => {
    const texts = ["abcdefghij", "klmnopqrst", "uvwxyzabcd"];
    const chunks = texts.map((text, i) => ({ alignment: alignmentOf(text, 0, 0.12), audioSeconds: i + 1 }));
    const emitted = run(texts.join(""), chunks, 3);
    const starts = emitted.flatMap((one) => one?.startSeconds ?? []);
    expect(starts).toHaveLength(30);
    for (const [index, seconds] of starts.entries()) {
      expect(Math.abs(seconds - index / 10)).toBeLessThanOrEqual(0.21);
    }
  });

  it.each([-1, 0.5, 1, 2, 4])(
    "do not wander off where a chunk's times end %d ms before its audio",
    (gapMs) => {
      const text = "abcdefghijklmnopqrstuvwxyz";
      const timing = responseTimesOf({ text });
      const starts: number[] = [];
      for (let i = 0; i < 13; i += 1) {
        const alignment = alignmentOf(text.slice(2 * i, 2 * i + 2), 0, 0.1 - gapMs / 2000);
        starts.push(...(timing.push(alignment, null, { audioSeconds: 0.2 * (i + 1) })?.startSeconds ?? []));
      }
      starts.push(...(timing.finish(2.6)?.startSeconds ?? []));
      expect(starts).toHaveLength(26);
      const errors = Array.from({ length: 13 }, (_, i) => Math.abs((starts[2 * i] ?? Number.NaN) - 0.2 * i));
      expect(Math.max(...errors)).toBeLessThanOrEqual((2 * Math.abs(gapMs)) / 1000 + 1e-9);
    },
  );

  it("begin where their audio begins, also behind a chunk without timing", () => {
    const chunks = [
      { alignment: alignmentOf("ab"), audioSeconds: 0.2 },
      { alignment: null, audioSeconds: 0.5 },
      { alignment: alignmentOf("efghijklmnopqrst"), audioSeconds: 2.1 },
    ];
    expect(shown(run("abcdefghijklmnopqrst", chunks, 2.1))[2]).toContain("e0.50 f0.60 g0.70");
  });
});

describe("a last chunk that reaches beyond the audio", () => {
  const first = { alignment: alignmentOf("abc"), audioSeconds: 0.3 };
  const long = { alignment: alignmentOf("def", 0.3, 0.4), audioSeconds: 0.6 };

  it("waits, and shrinks into what is there", () => {
    const emitted = run("abcdef", [first, long, { alignment: null, audioSeconds: 0.61 }], 0.6);
    expect(shown(emitted)).toEqual(["a0.00 b0.10 c0.20", "", "", "d0.30 e0.40 f0.50"]);
    // Where in the last of the audio a letter ends is not known; a mark has all of it.
    expect(emitted[3]?.timing).toBe("estimated");
    const stop = { alignment: alignmentOf("de.", 0.3, 0.4), audioSeconds: 0.6 };
    const marked = run("abcde.", [first, stop, { alignment: null, audioSeconds: 0.61 }], 0.6);
    expect(shown(marked)).toEqual(["a0.00 b0.10 c0.20", "", "", "d0.30 e0.40 .0.50"]);
    expect(marked[3]?.timing).toBe("scaled");
  });

  it("is emitted unchanged when its audio comes after all", () => {
    const emitted = run("abcdef", [first, long, { alignment: null, audioSeconds: 1.5 }], 1.5);
    expect(startsOf(emitted[2] ?? null)).toBe("d0.30 e0.70 f1.10");
    expect(emitted[2]?.timing).toBe("exact");
  });
});

describe("a character whose end is missing", () => {
  /** "abc", each 0.1 s; the end of the last is missing, as many as `heldSeconds` of its audio come with what is next. */
  const heldSeconds = 0.00125;
  const open = { ...alignmentOf("abc", 0, 0.1), character_end_times_seconds: [0.1, 0.2, Number.NaN] };

  it("reaches to the next one, though an encoder held back some of its audio", () => {
    const chunks = [
      { alignment: open, audioSeconds: 0.3 - heldSeconds },
      { alignment: alignmentOf("def", 0.3, 0.1), audioSeconds: 0.6 },
    ];
    const emitted = run("abcdef", chunks, 0.6);
    const ends = emitted.flatMap((piece) => piece?.endSeconds ?? []);
    const starts = emitted.flatMap((piece) => piece?.startSeconds ?? []);
    expect(starts).toHaveLength(6);
    // No sample is nobody's.
    expect(starts.slice(1)).toEqual(ends.slice(0, -1));
  });

  it("reaches to the end of the response, where it is the last", () => {
    const chunks = [
      { alignment: open, audioSeconds: 0.3 - heldSeconds },
      { alignment: null, audioSeconds: 0.3 },
    ];
    const emitted = run("abc", chunks, 0.3);
    expect(emitted.flatMap((piece) => piece?.characters ?? []).join("")).toBe("abc");
    expect(emitted.flatMap((piece) => piece?.endSeconds ?? []).at(-1)).toBe(0.3);
  });
});
