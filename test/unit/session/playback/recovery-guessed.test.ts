/** Speech that breaks off where its times were mended or are guesses: it goes on behind a word, or a pause, and nothing is heard twice. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { audioOf, breakOff, charactersOf, expectTrue, wordsOf } from "../broken-speech.ts";
import { CHAR_MS, lettersOf, spell, stage } from "../spelling.ts";

const TEXT = [
  "Abc def ghi jkl.",
  "Mno pqr stu.",
  "Vwx yza bcd efg hij.",
  "Klm nop qrs, tuv wxy.",
  "Zab cde fgh.",
  "Ijk lmn opq rst uvw.",
].join(" ");
/** Each mark is a pause of 0.4 s. */
const pausedAt = (text: string): string => text.replaceAll(/[.,]/g, " ".repeat(7));
const SAID = pausedAt(TEXT);
const CHUNK_MS = 200;
const BYTES_PER_MS = 8;
const MARKS = [...TEXT.matchAll(/[.,]/g)].map(({ index }) => index);
/** Where the pauses of what is said end, ms. */
const PAUSE_ENDS_MS = MARKS.map((at) => (pausedAt(TEXT.slice(0, at + 1)).length + 1) * CHAR_MS);

/** Speech without any times comes up to `cameMs`, in real time from `burstMs` on, and breaks off. */
function breakOffAt(cameMs: number, burstMs: number, query = "format=ulaw_8000", text = TEXT) {
  const rig = stage(query, { aheadMs: 8000 });
  rig.speak(text, "u");
  rig.answer(0, { chars: 0, isOpen: true });
  const audio = spell(SAID);
  for (let atMs = 0; atMs < cameMs; atMs += CHUNK_MS) {
    const end = Math.min(cameMs, atMs + CHUNK_MS);
    rig.requests[0]?.chunk(audio.slice(atMs * BYTES_PER_MS, end * BYTES_PER_MS));
    if (atMs >= burstMs) rig.clock.advance(CHUNK_MS);
  }
  const heardMs = rig.sink.frames.length * 20;
  breakOff(rig, 0);
  rig.hearOut();
  return { ...rig, heardMs };
}

function expectWhole(rig: ReturnType<typeof breakOffAt>): void {
  expect(rig.outcomes()).toEqual(["u/done"]);
  expect(rig.sink.eventsOf("error")).toEqual([]);
  expect(audioOf(rig.sink)).toBe(lettersOf(TEXT));
  const words = wordsOf(rig.sink);
  expect(words.map(({ text }) => text)).toEqual(TEXT.match(/[a-z]+/gi));
  const times = words.flatMap((word) => [word.start_ms, word.end_ms]);
  expect(times).toEqual([...times].sort((a, b) => a - b));
  const characters = charactersOf(rig.sink);
  expect(characters.map(({ text }) => text).join("")).toBe(TEXT);
  expect(rig.sink.eventsOf("utterance.done")).toMatchObject([{ characters_spoken: TEXT.length }]);
}

describe("a response without any times that breaks off", () => {
  const lastMs = SAID.length * CHAR_MS;

  it("goes on behind the last pause of what has come, before its times were told", () => {
    const rig = breakOffAt(3800, 3600);
    expect(rig.heardMs).toBeLessThan(1000);
    const third = MARKS[2] ?? 0;
    expect(rig.asked()).toEqual([TEXT, TEXT.slice(third)]);
    expect(rig.sink.eventsOf("warning")).toMatchObject([{ code: "speech_taken_up", start: third }]);
    expectWhole(rig);
  });

  it("fails where it depends on the voice which stops have a pause", () => {
    const text = TEXT.replace("Mno", "mno");
    const rig = breakOffAt(3800, 3600, "format=ulaw_8000", text);
    expect(rig.outcomes()).toEqual(["u/failed"]);
    expect(rig.asked()).toEqual([text]);
  });

  it("goes on behind the pause that is being heard", () => {
    const [, secondMs = 0] = PAUSE_ENDS_MS;
    const rig = breakOffAt(secondMs + 200, 600);
    expect(rig.heardMs).toBeLessThanOrEqual(secondMs);
    expect(rig.heardMs).toBeGreaterThan(secondMs - 400);
    expect(rig.asked()).toEqual([TEXT, TEXT.slice(MARKS[1])]);
    expectWhole(rig);
  });

  it("keeps what may sound on behind the last word, below the level of silence", () => {
    const rig = breakOffAt(3800, 3600);
    const words = wordsOf(rig.sink);
    const [hij, klm] = ["hij", "Klm"].map((text) => words.find((word) => word.text === text));
    // The rest begins with the stop and a space.
    expect((klm?.start_ms ?? 0) - (hij?.end_ms ?? 0)).toBeCloseTo(60 + 2 * CHAR_MS, -1);
  });

  it("wherever, and however much was heard: whole, or it fails where no pause is ahead", () => {
    let whole = 0;
    fc.assert(
      fc.property(
        fc.integer({ min: 100, max: lastMs / 10 - 60 }),
        fc.nat({ max: 60 }),
        fc.constantFrom("", "&lead_ms=1000", "&pace=burst"),
        (came, burst, query) => {
          const rig = breakOffAt(came * 10, burst * 100, `format=ulaw_8000${query}`);
          const isAhead = PAUSE_ENDS_MS.some((endMs) => endMs < came * 10 && rig.heardMs <= endMs);
          if (rig.outcomes()[0] === "u/done") {
            expectWhole(rig);
            whole += 1;
          } else expect(isAhead && rig.heardMs < 0.8 * came * 10 && came > 500).toBe(false);
        },
      ),
      { numRuns: 150 },
    );
    expect(whole).toBeGreaterThan(30);
  });

  it("fails where all that has come was heard", () => {
    const rig = breakOffAt(3000, 0, "format=ulaw_8000&lead_ms=4000");
    expect(rig.outcomes()).toEqual(["u/failed"]);
    expect(rig.sink.eventsOf("error")).toMatchObject([{ code: "upstream_truncated" }]);
    expect(rig.asked()).toEqual([TEXT]);
  });
});

describe("a response at a wrong pace that breaks off", () => {
  const WORDS = "abc defg, hij klmno pq rstu vwx yzab cde fghi.";

  it.each([0.9, 1.1])("goes on behind the last whole word of times that were mended: %f", (factor) => {
    const rig = stage("format=ulaw_8000&lead_ms=1000");
    rig.speak(WORDS, "u");
    const [request] = rig.requests;
    rig.answer(0, { chars: 0, isOpen: true });
    for (let at = 0; at < 36; at += 9) {
      const characters = [...WORDS.slice(at, at + 9)];
      const secondsAt = (index: number): number => ((at + index) * CHAR_MS * factor) / 1000;
      const alignment = {
        characters,
        character_start_times_seconds: characters.map((_, index) => secondsAt(index)),
        character_end_times_seconds: characters.map((_, index) => secondsAt(index + 1)),
      };
      request?.chunk(spell(characters.join("")), { alignment });
    }
    rig.clock.advance(300);
    expect(new Set(rig.sink.eventsOf("words").map(({ timing }) => timing))).toEqual(new Set(["scaled"]));
    breakOff(rig, 0);
    rig.hearOut();
    expect(rig.outcomes()).toEqual(["u/done"]);
    expect(rig.asked()).toEqual([WORDS, WORDS.slice(WORDS.indexOf(" cde"))]);
    expect(audioOf(rig.sink)).toBe(lettersOf(WORDS));
    expectTrue(rig.sink, WORDS);
  });
});
