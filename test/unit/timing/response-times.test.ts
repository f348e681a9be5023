import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Alignment } from "../../../src/timing/alignment.ts";
import { responseTimesOf } from "../../../src/timing/response-times-of.ts";
import type { TimedCharacters } from "../../../src/timing/timed.ts";
import { FIXTURES } from "../text/fixtures.ts";
import { alignmentOf, problemWith, run, startsOf } from "./upstream-fixtures.ts";

function runOf(text: string, chunks: readonly (Alignment | null)[], audioSeconds: number) {
  const timing = responseTimesOf({ text });
  const all: (TimedCharacters | null)[] = chunks.map((chunk) => timing.push(chunk, null));
  all.push(timing.finish(audioSeconds));
  expect(problemWith(all, { text })).toBe("");
  return all;
}

function joined(all: readonly (TimedCharacters | null)[]): string {
  return all
    .map(startsOf)
    .filter((shown) => shown !== "")
    .join(" ");
}

const labels = (all: readonly (TimedCharacters | null)[]) => all.map((timed) => timed?.timing ?? null);

describe("ResponseTimes with a sound alignment", () => {
  it("gives the characters with their offsets in the text, exact", () => {
    const timing = responseTimesOf({ text: "Hi you" });
    expect(timing.push(alignmentOf("Hi "), null)).toEqual({
      start: 0,
      end: 3,
      characters: ["H", "i", " "],
      startSeconds: [0, 0.1, 0.2],
      endSeconds: [0.1, 0.2, 0.3],
      timing: "exact",
    });
    expect(timing.push(null, null)).toBeNull();
    expect(startsOf(timing.push(alignmentOf("you", 0.35), null))).toBe("y0.35 o0.45 u0.55");
    expect(timing.finish(0.7)).toBeNull();
    expect(timing.finish(0.7)).toBeNull();
    expect(timing.push(alignmentOf("more", 1), null)).toBeNull();
  });

  it.each(FIXTURES.filter((text) => text !== ""))(
    "any split of the alignment of %j gives the same times",
    (text) => {
      const whole = alignmentOf(text);
      const units = text.split("");
      const all = runOf(text, [whole], text.length / 10);
      const times = all.flatMap((timed) => timed?.startSeconds ?? []);
      // Letter by letter, and by UTF-16 code units: halves of a pair are joined again.
      const letters = runOf(
        text,
        whole.characters.map((c, i) => alignmentOf([c], i * 0.1)),
        text.length / 10,
      );
      expect(letters.flatMap((timed) => timed?.startSeconds ?? [])).toEqual(times);
      const halves = runOf(
        text,
        units.map((unit, i) => alignmentOf([unit], i * 0.1)),
        text.length / 10,
      );
      expect(halves.map((timed) => timed?.characters.join("") ?? "").join("")).toBe(text);
      expect(
        labels([...all, ...letters, ...halves]).every((label) => label === null || label === "exact"),
      ).toBe(true);
    },
  );

  it("keeps a grapheme whole that the upstream timed as one, and splits words that it timed as one", () => {
    expect(joined(runOf("a👨‍👩‍👧b", [alignmentOf(["a", "👨‍👩‍👧", "b"])], 0.3))).toBe(
      "a0.00 👨‍👩‍👧0.10 b0.20",
    );
    const words = runOf("Hi you", [alignmentOf(["Hi", " ", "you"])], 0.3);
    expect(joined(words)).toBe("H0.00 i0.05  0.10 y0.20 o0.23 u0.27");
    expect(labels(words)[0]).toBe("scaled");
    // Where the first of them ends nobody has said.
    const both = runOf("Hi you", [alignmentOf(["Hi you"])], 0.1);
    expect(labels(both)[0]).toBe("estimated");
  });

  it("holds characters back until their audio has come, where it knows how much there is", () => {
    const timing = responseTimesOf({ text: "HiHello you" });
    expect(startsOf(timing.push(alignmentOf("Hi"), null, { audioSeconds: 0.2 }))).toBe("H0.00 i0.10");
    timing.push(alignmentOf("Hello ", 0.2), null, { audioSeconds: 0.205 });
    expect(startsOf(timing.push(null, null, { audioSeconds: 0.47 }))).toBe("H0.20 e0.30");
    expect(startsOf(timing.push(null, null, { audioSeconds: 0.71 }))).toBe("l0.40 l0.50 o0.60");
    expect(startsOf(timing.push(alignmentOf("you", 0.8), null, { audioSeconds: 1.1 }))).toBe(
      " 0.70 y0.80 o0.90 u1.00",
    );
  });

  it("finds text again where it goes on, though the same words come later, too, and audio came without times", () => {
    const text = "la la la la la la la la la la.";
    const timing = responseTimesOf({ text });
    const emitted: (TimedCharacters | null)[] = [];
    for (let from = 0; from < text.length; from += 6) {
      const [startSeconds, endSeconds] = [from / 10, (from + 6) / 10];
      emitted.push(
        timing.push(alignmentOf(text.slice(from, from + 6), startSeconds), null, {
          audioSeconds: startSeconds + 0.1,
        }),
      );
      for (const audioSeconds of [startSeconds + 0.3, endSeconds])
        emitted.push(timing.push(null, null, { audioSeconds }));
    }
    emitted.push(timing.finish(text.length / 10));
    expect(joined(emitted)).toBe(joined(runOf(text, [alignmentOf(text)], text.length / 10)));
    expect(labels(emitted).every((label) => label === null || label === "exact")).toBe(true);
  });

  it("waits for the end of the last times, which may be too long, unless they are needed at once", () => {
    const emitted = (audioSeconds: number) => {
      const timing = responseTimesOf({ text: "Hi you al." });
      timing.push(alignmentOf("Hi "), null, { audioSeconds: 0.1 });
      timing.push(null, null, { audioSeconds: 0.3 });
      timing.push(alignmentOf("you ", 0.3), null, { audioSeconds: 0.4 });
      timing.push(null, null, { audioSeconds: 0.7 });
      expect(timing.push(alignmentOf("al.", 0.7), null, { audioSeconds: 0.8 })).toBeNull();
      expect(timing.push(null, null, { audioSeconds: 0.85 })).toBeNull();
      return { timing, all: timing.push(null, null, { audioSeconds }) };
    };
    expect(startsOf(emitted(1).all)).toBe("a0.70 l0.80 .0.90");
    const long = emitted(0.91);
    expect(long.all).toBeNull();
    const end = long.timing.finish(0.91);
    expect(startsOf(end)).toBe("a0.70 l0.77 .0.84");
    expect(end?.timing).toBe("scaled");
    expect(startsOf(emitted(0.9).timing.estimateUpTo({ neededSeconds: 0.9 }))).toBe("a0.70 l0.80");
  });

  it.each([
    [0.3 + 1.4 / 24_000, 0.3 + 1.4 / 24_000],
    [0.3014, 0.3014],
    [0.302, 0.3],
  ])(
    "of %f s of audio the last character, which ends at 0.3, is emitted to end at %f",
    (audioSeconds, emitted) => {
      const timing = responseTimesOf({ text: "abc" });
      const timed = timing.push(alignmentOf("abc"), null, { audioSeconds });
      expect(timed?.endSeconds.at(-1)).toBeCloseTo(emitted, 9);
      expect(timed?.timing).toBe("exact");
      const late = responseTimesOf({ text: "abc" });
      late.push(alignmentOf("ab"), null, { audioSeconds: 0.2 });
      expect(late.push(alignmentOf("c", 0.2), null, { audioSeconds: 0.28 })).toBeNull();
      expect(late.finish(audioSeconds)?.endSeconds.at(-1)).toBeCloseTo(emitted, 9);
    },
  );
});

describe("ResponseTimes with characters that differ", () => {
  it.each([
    ["white space around it", "Hi you", " Hi you ", "H0.10 i0.20  0.30 y0.40 o0.50 u0.60", "exact"],
    ["other white space", "a\nb  c", "a b c", "a0.00 \n0.10 b0.20  0.30  0.40 c0.40", "exact"],
    ["no white space", "a b", "ab", "a0.00  0.10 b0.10", "exact"],
    [
      "characters left out",
      "Hi you all!",
      "Hi all!",
      "H0.00 i0.10  0.20 y0.30 o0.30 u0.30  0.30 a0.30 l0.40 l0.50 !0.60",
      "estimated",
    ],
    [
      "characters added",
      "Hi all now",
      "Hi xyz all now",
      "H0.00 i0.10  0.20 a0.70 l0.80 l0.90  1.00 n1.10 o1.20 w1.30",
      "estimated",
    ],
    [
      "another quote",
      "It’s fine",
      "It's fine",
      "I0.00 t0.10 ’0.20 s0.30  0.40 f0.50 i0.60 n0.70 e0.80",
      "estimated",
    ],
    [
      "another case",
      "HELLO all",
      "Hello all",
      "H0.00 E0.10 L0.20 L0.30 O0.40  0.50 a0.60 l0.70 l0.80",
      "estimated",
    ],
    [
      "a composed letter",
      "e\u0301te now",
      "éte now",
      "e\u03010.00 t0.10 e0.20  0.30 n0.40 o0.50 w0.60",
      "estimated",
    ],
  ])("finds its way with %s", (_name, text, said, expected, label) => {
    const all = runOf(text, [alignmentOf(said)], 3);
    expect(joined(all)).toBe(expected);
    expect(
      labels(all)
        .filter((one) => one !== null)
        .at(-1),
    ).toBe(label);
  });

  it("spreads the time of a normalized number over its digits, and is exact before and behind it", () => {
    const said = "It costs one thousand two hundred thirty four dollars and fifty six cents is it and more";
    const text = "It costs $1,234.56 is it and more";
    const [timed] = runOf(text, [alignmentOf(said)], 9);
    const start = timed?.startSeconds ?? [];
    const dollar = said.indexOf("one") / 10;
    const behind = said.indexOf(" is it") / 10;
    expect(start[text.indexOf("$")]).toBeCloseTo(dollar, 6);
    expect(start[text.indexOf(" is it")]).toBeCloseTo(behind, 6);
    expect(start.slice(9, 18).every((time) => time >= dollar && time < behind)).toBe(true);
  });

  it("crosses a difference that a chunk border cuts", () => {
    const said = "It costs five dollars and that is that";
    const text = "It costs $5 and that is that";
    const whole = alignmentOf(said);
    for (let cut = 1; cut < said.length; cut++) {
      const all = runOf(text, [alignmentOf(said.slice(0, cut)), alignmentOf(said.slice(cut), cut / 10)], 4);
      const starts = all.flatMap((timed) => timed?.startSeconds ?? []);
      const last = whole.character_start_times_seconds.slice(-10);
      for (const [i, time] of starts.slice(-10).entries()) expect(time).toBeCloseTo(last[i] ?? 0, 6);
    }
  });

  it("maps the upstream's character count to the client's text, for voice segments", () => {
    const timing = responseTimesOf({ text: "a😀bc" });
    timing.push(alignmentOf([" ", "a", "\ud83d", "\ude00", "b", "c"]), null);
    expect([0, 1, 2, 3, 4, 5, 6].map((index) => timing.textOffsetOf(index))).toEqual([0, 0, 1, 1, 3, 4, 5]);
  });
});

describe("ResponseTimes with a pass that begins again", () => {
  const text = "Hello you all, and them.";

  it.each([
    ["the whole text twice", ["Hello you all, and them.", "Hello you all, and them."]],
    ["the beginning, then all", ["Hello you", "Hello you all, and them."]],
    ["the middle again", ["Hello you all", "you all, and them."]],
  ])("drops what was timed before: %s", (_name, passes) => {
    const chunks = passes.map((pass) => alignmentOf(pass, text.indexOf(pass) / 10));
    const all = runOf(text, chunks, 2.4);
    expect(joined(all)).toBe(startsOf(runOf(text, [alignmentOf(text)], 2.4)[0] ?? null));
    expect(labels(all).every((label) => label === null || label === "exact")).toBe(true);
  });

  it("drops a second pass within one chunk", () => {
    const once = alignmentOf("Hello you");
    const again = alignmentOf(text);
    const both = {
      characters: [...once.characters, ...again.characters],
      character_start_times_seconds: [
        ...once.character_start_times_seconds,
        ...again.character_start_times_seconds,
      ],
      character_end_times_seconds: [
        ...once.character_end_times_seconds,
        ...again.character_end_times_seconds,
      ],
    };
    const all = runOf(text, [both], 2.4);
    expect(joined(all)).toBe(startsOf(runOf(text, [again], 2.4)[0] ?? null));
    expect(labels(all)).toEqual(["exact", null]);
  });

  it("goes on with the next chunk where a repeated one stops short", () => {
    const chunks = [alignmentOf("Hello you all"), alignmentOf("Hello "), alignmentOf(", and them.", 1.3)];
    expect(labels(runOf(text, chunks, 2.4))).toEqual(["exact", null, "exact", null]);
  });

  it("keeps text that really is said twice", () => {
    expect(joined(runOf("ha ha", [alignmentOf("ha "), alignmentOf("ha", 0.3)], 0.5))).toBe(
      "h0.00 a0.10  0.20 h0.30 a0.40",
    );
  });
});

describe("ResponseTimes with bad times", () => {
  const sound = alignmentOf("Hello you");
  const withStarts = (starts: readonly number[]): Alignment => ({
    ...sound,
    character_start_times_seconds: starts,
  });

  it("a clock that starts again with its chunk: counted from the chunk's audio, scaled", () => {
    const chunks = [
      { alignment: alignmentOf("Hello you"), audioSeconds: 0.9 },
      { alignment: alignmentOf(" all"), audioSeconds: 1.3 },
    ];
    const all = run("Hello you all", chunks, 1.3);
    expect(all.map(startsOf)).toEqual([
      "H0.00 e0.10 l0.20 l0.30 o0.40  0.50 y0.60 o0.70 u0.80",
      " 0.90 a1.00 l1.10 l1.20",
      "",
    ]);
    expect(labels(all)).toEqual(["exact", "scaled", null]);
  });

  it("starts such a chunk where its audio starts, where it knows that", () => {
    const timing = responseTimesOf({ text: "Hello you all" });
    timing.push(alignmentOf("Hello you"), null, { audioSeconds: 1.5 });
    const emitted = timing.push(alignmentOf(" all"), null, { audioSeconds: 2 });
    expect(startsOf(emitted)).toContain(" 1.50 a1.60 l1.70 l1.80");
  });

  it("a clock that starts again within a chunk: times that rise, behind it estimated", () => {
    const starts = [0, 0.2, 0.4, 0.6, 0.8, 0, 0.2, 0.4, 0.6];
    const chunk = { ...withStarts(starts), character_end_times_seconds: starts.map((time) => time + 0.2) };
    const all = runOf("Hello you", [chunk], 1.8);
    expect(problemWith(all, { text: "Hello you", audioSeconds: 1.8 })).toBe("");
    expect(joined(all)).toContain("H0.00 e0.20 l0.40 l0.60 o0.80 ");
    expect(labels(all).at(-1)).toBe("estimated");
  });

  it("a chunk that overlaps the one before it: laid over its own audio, estimated", () => {
    const chunks = [
      { alignment: alignmentOf("Hello you"), audioSeconds: 0.9 },
      { alignment: alignmentOf(" all", 0.7), audioSeconds: 1.1 },
    ];
    const all = run("Hello you all", chunks, 1.1);
    expect(joined(all.slice(1))).toBe(" 0.90 a0.95 l1.00 l1.05");
    expect(labels(all)).toEqual(["exact", "estimated", "estimated"]);
  });

  it.each([
    ["NaN", withStarts([0, 0.1, Number.NaN, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8])],
    ["null", withStarts([0, 0.1, null as unknown as number, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8])],
    ["Infinity", withStarts([0, 0.1, Number.POSITIVE_INFINITY, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8])],
    ["a string", withStarts([0, 0.1, "0.2" as unknown as number, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8])],
    ["a jump ahead", withStarts([0, 0.1, 7, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8])],
    ["a jump back", withStarts([0, 0.1, 0.2, 0.3, 0.05, 0.5, 0.6, 0.7, 0.8])],
    ["no ends", { ...sound, character_end_times_seconds: [] }],
    ["no starts", { ...sound, character_start_times_seconds: [] }],
    ["ends cut short", { ...sound, character_end_times_seconds: [0.1, 0.2, 0.3] }],
    ["starts cut short", { ...sound, character_start_times_seconds: [0, 0.1, 0.2] }],
    [
      "ends before starts",
      { ...sound, character_end_times_seconds: sound.character_start_times_seconds.map((t) => t - 0.2) },
    ],
  ])("repairs %s and says that it estimated", (_name, alignment) => {
    const all = runOf("Hello you", [alignment as Alignment], 0.9);
    const starts = all.flatMap((timed) => timed?.startSeconds ?? []);
    expect(starts).toHaveLength(9);
    for (const [i, time] of starts.entries()) expect(Math.abs(time - i / 10)).toBeLessThanOrEqual(0.101);
    expect(labels(all)).toContain("estimated");
  });

  it("negative times are none", () => {
    const all = runOf("Hello", [alignmentOf("Hello", -0.2)], 0.3);
    expect(joined(all)).toBe("H0.00 e0.00 l0.00 l0.10 o0.20");
    expect(labels(all)[0]).toBe("estimated");
  });

  it("takes no entries where the arrays are missing", () => {
    const broken = { characters: ["H", 5, null, "i"] } as unknown as Alignment;
    expect(labels(runOf("Hi", [broken], 1))).toEqual([null, "estimated"]);
  });

  it("takes times that come late for those of the text that stands first, though it reads the same further on", () => {
    const timing = responseTimesOf({ text: "Yes we can. Yes we did" });
    timing.push(null, null, { audioSeconds: 0.7 });
    const late = timing.push(alignmentOf("Yes we ", 0), null, { audioSeconds: 1.5 });
    expect(late).toMatchObject({ start: 0, end: 7, timing: "exact" });
  });
});

describe("ResponseTimes.finish()", () => {
  it("spreads text without any timing over the audio", () => {
    const [timed] = runOf("Hello you. Yes.", [], 2);
    expect(timed?.timing).toBe("estimated");
    expect(timed?.startSeconds[0]).toBe(0);
    expect(timed?.endSeconds.at(-1)).toBeCloseTo(2, 9);
  });

  it("gives the rest of a text whose alignment ended early", () => {
    const all = runOf("Hello you", [alignmentOf("Hello")], 1.3);
    expect(all[1]?.start).toBe(5);
    expect(all[1]?.startSeconds[0]).toBeCloseTo(0.5, 9);
    expect(all[1]?.endSeconds.at(-1)).toBeCloseTo(1.3, 9);
    expect(labels(all)).toEqual(["exact", "estimated"]);
  });

  it("leaves the label alone where only white space is missing", () => {
    expect(labels(runOf("Hello ", [alignmentOf("Hello")], 0.7))).toEqual(["exact", "exact"]);
  });

  it("shrinks what waited into the audio's real length", () => {
    const timing = responseTimesOf({ text: "Hello me." });
    const all = [
      timing.push(alignmentOf("Hello me.", 0, 0.2), null, { audioSeconds: 0.5 }),
      timing.push(null, null, { audioSeconds: 1 }),
      timing.finish(1.2),
    ];
    expect(problemWith(all, { text: "Hello me.", audioSeconds: 1.2 })).toBe("");
    expect(all[2]?.endSeconds.at(-1)).toBeCloseTo(1.2, 9);
    expect(all[2]?.timing).toBe("scaled");
  });

  it("shrinks the times of a last letter up to the last sound, and calls it a guess", () => {
    const timing = responseTimesOf({ text: "Hello you" });
    timing.push(alignmentOf("Hello you", 0, 0.2), null, { audioSeconds: 1.2 });
    const timed = timing.finish(1.2, 0.9);
    expect(timed?.endSeconds.at(-1)).toBeCloseTo(0.9, 9);
    expect(timed?.timing).toBe("estimated");
  });

  it("lets nothing end behind the audio, though it was there to an encoder's delay when it was timed", () => {
    const facts = { text: "Hello you", audioSeconds: 0.895 };
    for (const lastSeconds of [0.9, 0.96]) {
      const timing = responseTimesOf(facts);
      const all = [
        timing.push(alignmentOf("Hello "), null, { audioSeconds: 0.6 }),
        timing.push(alignmentOf("you", 0.6, (lastSeconds - 0.6) / 3), null, { audioSeconds: 0.895 }),
        timing.finish(0.895),
      ];
      expect(problemWith(all, facts)).toBe("");
      expect(all.at(-1)?.characters.at(-1)).toBe("u");
      expect(all.at(-1)?.endSeconds.at(-1)).toBeCloseTo(0.895, 9);
    }
  });

  it("reports nothing behind the audio where the times reach further than an encoder holds back", () => {
    const facts = { text: "Hello you all", audioSeconds: 1 };
    const timing = responseTimesOf(facts);
    const all = [
      // The last letter of "Hello" goes on in the next chunk, so that no chunk has kept to its audio.
      timing.push(alignmentOf("Hello"), null, { audioSeconds: 0.45 }),
      timing.push(alignmentOf(" you", 0.5), null, { audioSeconds: 0.85 }),
      timing.push(alignmentOf(" all", 0.9, 0.06), null, { audioSeconds: 1 }),
      timing.finish(1),
    ];
    expect(problemWith(all, facts)).toBe("");
  });

  it("says nothing of a response without audio", () => {
    expect(responseTimesOf({ text: "Hello" }).finish(0)).toBeNull();
    expect(responseTimesOf({ text: "Hello" }).finish(Number.NaN)).toBeNull();
  });

  it("uses the normalized alignment where the other is missing", () => {
    const timing = responseTimesOf({ text: "Hi you" });
    expect(startsOf(timing.push(null, alignmentOf(" Hi you ")))).toBe("H0.10 i0.20  0.30 y0.40 o0.50 u0.60");
  });
});

describe("ResponseTimes properties", () => {
  const seconds = fc.oneof(
    fc.double({ min: -1, max: 20, noNaN: true }),
    fc.constantFrom(Number.NaN, Number.POSITIVE_INFINITY, -0, 0, 1e9),
  );
  const alignment = fc
    .tuple(
      fc.array(
        fc.oneof(
          fc.constantFrom(..."Hello you all 😀\ud83d\ude00".split(""), "ab", ""),
          fc.string({ maxLength: 3 }),
        ),
        {
          maxLength: 30,
        },
      ),
      fc.array(seconds, { maxLength: 32 }),
      fc.array(seconds, { maxLength: 32 }),
    )
    .map(([characters, starts, ends]) => ({
      characters,
      character_start_times_seconds: starts,
      character_end_times_seconds: ends,
    }));
  const chunk = fc.record({
    alignment: fc.oneof(alignment, fc.constant(null)),
    normalized: fc.oneof(alignment, fc.constant(null)),
    audioSeconds: fc.double({ min: 0, max: 2, noNaN: true }),
  });

  it("whatever the upstream sends: whole characters, no hole, nothing twice, never back, all text timed", () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...FIXTURES.filter((text) => text !== ""), "Hello you all 😀 Hello you"),
        fc.array(chunk, { maxLength: 6 }),
        fc.boolean(),
        (text, chunks, tellsAudio) => {
          const timing = responseTimesOf({ text });
          let audioSeconds = 0.5;
          const all = chunks.map((each) => {
            audioSeconds += each.audioSeconds;
            return timing.push(each.alignment, each.normalized, tellsAudio ? { audioSeconds } : {});
          });
          all.push(timing.finish(audioSeconds));
          expect(problemWith(all, { text })).toBe("");
          expect(all.reduce((sum, timed) => sum + (timed === null ? 0 : timed.end - timed.start), 0)).toBe(
            text.length,
          );
          const last = all.findLast((timed) => timed !== null)?.endSeconds.at(-1) ?? 0;
          if (tellsAudio) expect(last).toBeLessThanOrEqual(audioSeconds + 0.051);
        },
      ),
      { seed: 21, numRuns: 1500 },
    );
  });

  it("a sound alignment with any characters lost stays within the hole", () => {
    const text = "Hello you all, this is what was said when nobody was there.";
    fc.assert(
      fc.property(fc.uniqueArray(fc.nat(text.length - 1), { maxLength: 8 }), (lost) => {
        const whole = alignmentOf(text);
        const keep = <T>(all: readonly T[]): T[] => all.filter((_, index) => !lost.includes(index));
        const all = runOf(
          text,
          [
            {
              characters: keep(whole.characters),
              character_start_times_seconds: keep(whole.character_start_times_seconds),
              character_end_times_seconds: keep(whole.character_end_times_seconds),
            },
          ],
          text.length / 10,
        );
        const starts = all.flatMap((timed) => timed?.startSeconds ?? []);
        const worst = Math.max(...starts.map((time, index) => Math.abs(time - index / 10)));
        expect(worst).toBeLessThanOrEqual(0.1 * (lost.length + 6));
      }),
      { seed: 22, numRuns: 400 },
    );
  });

  it("takes a long text in many chunks, and an upstream that never stops, in linear time", () => {
    const text = "Hello you all, this is it. ".repeat(2000);
    const timing = responseTimesOf({ text });
    let length = 0;
    for (let at = 0; at < text.length; at += 20) {
      const timed = timing.push(alignmentOf(text.slice(at, at + 20), at / 10), null);
      length += (timed?.end ?? 0) - (timed?.start ?? 0);
    }
    expect(length).toBe(text.length);
    const noise = responseTimesOf({ text: "Hello you all" });
    for (let i = 0; i < 1000; i++) noise.push(alignmentOf("zqxj".repeat(50), i), null);
    expect(noise.finish(1)?.end).toBe(13);
  });
});
