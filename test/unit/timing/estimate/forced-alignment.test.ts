import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { FeatureTrack } from "../../../../src/timing/estimate/feature-track.ts";
import { alignLetters, type Letter } from "../../../../src/timing/estimate/forced-alignment.ts";
import {
  CLASS_FEATURES,
  classOf,
  type LetterClass,
  lengthShareOf,
} from "../../../../src/timing/estimate/letter-classes.ts";

const LIKE: Readonly<Record<LetterClass, readonly [levelDb: number, tilt: number]>> = {
  vowel: [-3, 0.1],
  sonorant: [-11, 0.05],
  hiss: [-14, 0.5],
  stop: [-30, 0.2],
  other: [-8, 0.2],
  gap: [-60, 0],
  punctuation: [-60, 0],
};

function trackOf(sounds: readonly (readonly [kind: LetterClass, frames: number])[]): FeatureTrack {
  const like = sounds.flatMap(([kind, frames]) => Array.from({ length: frames }, () => LIKE[kind]));
  return {
    startSeconds: 0,
    endSeconds: like.length / 100,
    levels: Float64Array.from(like, ([levelDb]) => levelDb),
    tilts: Float64Array.from(like, ([, tilt]) => tilt),
  };
}

const letters = (text: string): Letter[] =>
  Array.from(text, (character) => {
    const letterClass = classOf(character);
    return {
      class: letterClass,
      weight: (letterClass === "gap" ? 0.5 : 1) * CLASS_FEATURES[letterClass].weight,
    };
  });

const placesOf = (text: string, track: FeatureTrack): number[] => [
  ...(alignLetters(letters(text), track) ?? []),
];

/** How long letters usually last draws each place a little; no test is about that. */
function expectNear(places: readonly number[], expected: readonly number[]): void {
  expect(places).toHaveLength(expected.length);
  const furthest = Math.max(...places.map((place, i) => Math.abs(place - (expected[i] ?? Number.NaN))));
  expect(furthest, `${places}`).toBeLessThanOrEqual(2);
}

describe("alignLetters", () => {
  it("finds letters where they sound, be they shorter or longer than others", () => {
    const track = trackOf([
      ["vowel", 4],
      ["hiss", 12],
      ["vowel", 16],
      ["stop", 5],
      ["vowel", 7],
    ]);
    expectNear(placesOf("asata", track), [0, 4, 16, 32, 37, 44]);
  });

  it("gives silence between words to the blank, and none where there is none", () => {
    const track = trackOf([
      ["vowel", 8],
      ["gap", 9],
      ["hiss", 8],
      ["vowel", 8],
    ]);
    expectNear(placesOf("a sa", track), [0, 8, 17, 25, 33]);
    const joined = trackOf([
      ["vowel", 8],
      ["hiss", 8],
      ["vowel", 8],
    ]);
    expectNear(placesOf("a sa", joined), [0, 8, 8, 16, 24]);
  });

  it.each([-48, -60, -75])("gives a long pause of %i dB that no mark stands for to the blank", (levelDb) => {
    for (const silent of [9, 15, 25, 40, 60, 90]) {
      const spoken = trackOf([
        ...([1, 2, 3, 4].flatMap(() => [
          ["sonorant", 8],
          ["vowel", 8],
        ]) as [LetterClass, number][]),
      ]);
      const withPause = (figures: Float64Array, pause: number): Float64Array =>
        Float64Array.of(...figures.subarray(0, 32), ...Array(silent).fill(pause), ...figures.subarray(32));
      const track: FeatureTrack = {
        startSeconds: 0,
        endSeconds: spoken.endSeconds + silent / 100,
        levels: withPause(spoken.levels, levelDb),
        tilts: withPause(spoken.tilts, 0),
      };
      const behind = 32 + silent;
      const expected = [0, 8, 16, 24, 32, behind, behind + 8, behind + 16, behind + 24, behind + 32];
      expectNear(placesOf("lama nama", track), expected);
    }
  });

  it("places letters without a blank in sound that is mostly silence", () => {
    const track = trackOf([
      ["vowel", 4],
      ["gap", 300],
      ["vowel", 4],
    ]);
    const places = placesOf("aa", track);
    expect([places[0], places[2]]).toEqual([0, 308]);
  });

  it("gives little time to a letter that is not heard", () => {
    const [, start = 0, end = 0] = placesOf("aha", trackOf([["vowel", 30]]));
    // A third of it would be 10.
    expect(end - start).toBeLessThanOrEqual(6);
    expect(start).toBeGreaterThan(10);
    expect(end).toBeLessThan(20);
  });

  it("gives the quiet before a stop to the stop, not to the space before it, and that behind a mark to the mark", () => {
    const closed = trackOf([
      ["vowel", 9],
      ["gap", 6],
      ["stop", 2],
      ["vowel", 9],
    ]);
    const [, space, stop] = placesOf("a ta", closed);
    expect([space, stop]).toEqual([9, 9]);
    const paused = trackOf([
      ["vowel", 9],
      ["gap", 11],
      ["stop", 6],
      ["vowel", 9],
    ]);
    const [, mark = 0, , behind = 0] = placesOf("a, ta", paused);
    expect(mark).toBe(9);
    expect(behind).toBeGreaterThanOrEqual(19);
  });

  it("goes by how long letters take where nothing is known of the sound", () => {
    const unknown = { ...trackOf([["vowel", 40]]), levels: new Float64Array(40).fill(Number.NaN) };
    expect(placesOf("aaaa", unknown)).toEqual([0, 10, 20, 30, 40]);
  });

  it("has no places without letters or without frames", () => {
    expect(alignLetters([], trackOf([["vowel", 4]]))).toBeNull();
    expect(alignLetters(letters("a"), trackOf([]))).toBeNull();
  });

  it("always rises from the first frame to the last, whatever is said and heard", () => {
    const classes = fc.constantFrom<LetterClass>(
      "vowel",
      "sonorant",
      "hiss",
      "stop",
      "other",
      "gap",
      "punctuation",
    );
    fc.assert(
      fc.property(
        fc.array(fc.record({ class: classes, weight: fc.double({ min: 0.01, max: 5, noNaN: true }) }), {
          minLength: 1,
          maxLength: 60,
        }),
        fc.integer({ min: -90, max: 10 }).chain((max) =>
          fc.array(fc.tuple(fc.double({ min: -90, max }), fc.double({ min: 0, max: 1 })), {
            minLength: 1,
            maxLength: 400,
          }),
        ),
        (said, heard) => {
          const track: FeatureTrack = {
            startSeconds: 0,
            endSeconds: heard.length / 100,
            levels: Float64Array.from(heard, ([level]) => level),
            tilts: Float64Array.from(heard, ([, tilt]) => tilt),
          };
          const places = [...(alignLetters(said, track) ?? [])];
          expect(places).toHaveLength(said.length + 1);
          expect(places[0]).toBe(0);
          expect(places.at(-1)).toBe(heard.length);
          for (const [i, place] of places.slice(1).entries())
            expect(place).toBeGreaterThanOrEqual(places[i] ?? 0);
        },
      ),
    );
  });
});

describe("classOf", () => {
  it.each([
    ["aeiouyAÉöøıéаёЮηά", "vowel"],
    ["lmnrwjŁñйлрм", "sonorant"],
    ["szfvhxßçčŠśźжцщχ", "hiss"],
    ["pbtdkgqcCбткπ", "stop"],
    ["字ภก5€क", "other"],
    [" \n", "gap"],
    [".,!?—", "punctuation"],
  ] as const)("%s: %s", (characters, kind) => {
    for (const character of characters) expect([character, classOf(character)]).toEqual([character, kind]);
  });
});

describe("lengthShareOf", () => {
  it.each([
    ["l", "l", 0.3],
    ["S", "h", 0.3],
    ["c", "k", 0.3],
    ["a", "h", 1],
    ["", "h", 1],
    [" ", "a", 1],
    ["s", "t", 1],
  ])("%s before %s: %d", (before, character, share) => {
    expect(lengthShareOf(character, before)).toBe(share);
  });
});
