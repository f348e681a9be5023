/** Chunks that begin with the last characters of the one before, where the text repeats itself, too. */
import { describe, expect, it } from "vitest";
import type { Alignment } from "../../../src/timing/alignment.ts";
import { responseTimesOf } from "../../../src/timing/response-times-of.ts";
import { alignmentOf, startsOf } from "./upstream-fixtures.ts";

const joinOf = (one: Alignment, other: Alignment): Alignment => ({
  characters: [...one.characters, ...other.characters],
  character_start_times_seconds: [
    ...one.character_start_times_seconds,
    ...other.character_start_times_seconds,
  ],
  character_end_times_seconds: [...one.character_end_times_seconds, ...other.character_end_times_seconds],
});

interface Chunk {
  readonly alignment: Alignment;
  readonly audioSeconds: number;
}

function emitted(text: string, chunks: readonly Chunk[]): string {
  const timing = responseTimesOf({ text });
  const all = chunks.map(({ alignment, audioSeconds }) => timing.push(alignment, null, { audioSeconds }));
  all.push(timing.finish(text.length / 10));
  expect(all.every((one) => one === null || one.timing !== "estimated")).toBe(true);
  return all
    .map(startsOf)
    .filter((shown) => shown !== "")
    .join(" ");
}

/** Pieces of a text; each but the first begins with up to `count` characters of the one before, at their own times. */
function overlapping(
  pieces: readonly string[],
  count: number,
  clock: "response" | "chunk" | "zero",
): Chunk[] {
  let at = 0;
  let before: Alignment | null = null;
  return pieces.map((piece) => {
    const from = clock === "response" ? at / 10 : 0;
    const own = alignmentOf(piece, from);
    const tail = before === null ? null : tailOf(before, count, clock === "zero");
    at += piece.length;
    before = own;
    return { alignment: tail === null ? own : joinOf(tail, own), audioSeconds: at / 10 };
  });
}

function tailOf(alignment: Alignment, count: number, isZero: boolean): Alignment {
  const last = (seconds: readonly number[]) => seconds.slice(-count).map((one) => (isZero ? 0 : one));
  return {
    characters: alignment.characters.slice(-count),
    character_start_times_seconds: last(alignment.character_start_times_seconds),
    character_end_times_seconds: last(alignment.character_end_times_seconds),
  };
}

describe("a chunk that begins with the last characters of the one before", () => {
  const pieces = ["还", "们我", "山今", "天又天", "大家山", "散步回", "家山。"];
  const text = pieces.join("");
  const expected = [...text].map((character, i) => `${character}${(i / 10).toFixed(2)}`).join(" ");

  it.each(["response", "chunk", "zero"] as const)("on the clock of the %s", (clock) => {
    for (const count of [1, 2, 3]) expect(emitted(text, overlapping(pieces, count, clock))).toBe(expected);
  });

  it.each([
    ["云", "云", "来吃饭"],
    ["还的还", "还。河", "边都"],
    ["山山山", "山山", "云山山"],
  ])("where the text repeats itself: %s %s %s", (...repeating) => {
    const whole = repeating.join("");
    const shown = [...whole].map((character, i) => `${character}${(i / 10).toFixed(2)}`).join(" ");
    expect(emitted(whole, overlapping(repeating, 3, "response"))).toBe(shown);
  });

  it("is distinguished from one that says the same again at the same times of its own clock", () => {
    expect(
      emitted(
        "哈哈哈哈",
        overlapping(["哈哈", "哈哈"], 0, "chunk").map((chunk, i) => ({
          ...chunk,
          alignment: alignmentOf("哈哈"),
          audioSeconds: 0.2 * (i + 1),
        })),
      ),
    ).toBe("哈0.00 哈0.10 哈0.20 哈0.30");
  });

  it("keeps the positions that voice segments count by", () => {
    const timing = responseTimesOf({ text: "abcdef" });
    timing.push(alignmentOf("abc"), null);
    timing.push(joinOf(alignmentOf("bc", 0.1), alignmentOf("def", 0.3)), null);
    expect([0, 1, 2, 3, 4, 5, 6].map((index) => timing.textOffsetOf(index))).toEqual([0, 1, 2, 1, 2, 3, 4]);
  });
});

describe("a chunk behind a gap", () => {
  it("is an estimate where its text stands elsewhere, too", () => {
    const timing = responseTimesOf({ text: "云云来吃饭" });
    timing.push(null, null, { audioSeconds: 0.1 });
    const one = timing.push(alignmentOf("云", 0.1), null, { audioSeconds: 0.2 });
    const rest = timing.push(alignmentOf("来吃饭", 0.2), null, { audioSeconds: 0.5 });
    for (const part of [one, rest, timing.finish(0.5)]) expect(part?.timing ?? "estimated").toBe("estimated");
  });
});
