import { describe, expect, it } from "vitest";
import { layOut, MIN_VISEME_MS, type TimedPhone } from "../../../../src/timing/visemes/lay-out.ts";
import { isPhone, OCULUS_VISEMES } from "../../../../src/timing/visemes/phones.ts";
import { ARKIT_WEIGHTS, arkitWeights } from "../../../../src/timing/visemes/viseme-sets.ts";

function phones(text: string, everyMs: number, fromMs = 0): TimedPhone[] {
  return text
    .split(" ")
    .filter(isPhone)
    .map((phone, index) => ({ phone, startMs: fromMs + index * everyMs }));
}
const names = (shapes: ReturnType<typeof layOut>) => shapes.map(({ viseme }) => viseme);

describe("mouth shapes of a word", () => {
  it("follow its sounds in each set", () => {
    const mouth = phones("M AW TH", 100);
    const word = { startMs: 0, endMs: 300 };
    expect(names(layOut(mouth, word, "oculus"))).toEqual(["PP", "aa", "TH"]);
    expect(names(layOut(mouth, word, "microsoft"))).toEqual([21, 9, 19]);
    expect(names(layOut(mouth, word, "arkit"))).toEqual(["PP", "aa", "TH"]);
    expect(arkitWeights("aa")).toBe(ARKIT_WEIGHTS.aa);
  });

  it("are one where they repeat", () => {
    expect(layOut(phones("T D AA", 50), { startMs: 0, endMs: 200 }, "oculus")).toEqual([
      { viseme: "DD", startMs: 0, endMs: 100 },
      { viseme: "aa", startMs: 100, endMs: 200 },
    ]);
  });

  it("lose what is seen least where time is short, never lips that close", () => {
    expect(names(layOut(phones("K AA M P N T", 15), { startMs: 0, endMs: 90 }, "oculus"))).toEqual([
      "aa",
      "PP",
    ]);
    expect(names(layOut(phones("M AA", 5), { startMs: 0, endMs: 10 }, "oculus"))).toEqual(["PP"]);
  });

  it("cover the word exactly, whatever the times of its sounds", () => {
    let seed = 7;
    const random = (): number => {
      seed = (seed * 48_271) % 2_147_483_647;
      return seed / 2_147_483_647;
    };
    const sounds = "P AA T IY K OW S EH M UW R F".split(" ").filter(isPhone);
    for (let round = 0; round < 500; round += 1) {
      const startMs = Math.round(random() * 1000);
      const word = { startMs, endMs: startMs + 40 + random() * 600 };
      const count = 1 + Math.floor(random() * 12);
      const times = Array.from({ length: count }, () => startMs - 50 + random() * 700).sort((a, b) => a - b);
      const timed = times.map((at, index) => ({ phone: sounds[index % 12] ?? "AA", startMs: at }));
      const shapes = layOut(timed, word, "oculus");
      expect(shapes[0]?.startMs).toBe(word.startMs);
      expect(shapes.at(-1)?.endMs).toBe(word.endMs);
      shapes.forEach((shape, index) => {
        expect(shape.endMs - shape.startMs).toBeGreaterThan(MIN_VISEME_MS - 1e-6);
        expect(shapes[index + 1]?.startMs ?? word.endMs).toBe(shape.endMs);
        expect(shapes[index + 1]?.viseme).not.toBe(shape.viseme);
      });
    }
  });

  it("are none without sounds or without time", () => {
    expect(layOut([], { startMs: 0, endMs: 100 }, "oculus")).toEqual([]);
    expect(layOut(phones("AA", 1), { startMs: 5, endMs: 5 }, "oculus")).toEqual([]);
  });

  it("all have weights from 0 to 1", () => {
    for (const name of OCULUS_VISEMES) {
      for (const weight of Object.values(ARKIT_WEIGHTS[name])) {
        expect(weight).toBeGreaterThan(0);
        expect(weight).toBeLessThanOrEqual(1);
      }
    }
  });
});
