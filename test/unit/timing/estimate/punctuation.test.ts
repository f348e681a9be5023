import { describe, expect, it } from "vitest";
import { marksOf } from "../../../../src/timing/estimate/punctuation.ts";

describe("marks of a text at which a voice may pause", () => {
  it.each([
    ["Yes. No, well; so. Then", [true, false, false, true]],
    ["今天很好。我们，去", [true, false]],
    ["Lists\n- one", [true]],
    ["approx. five, e.g. this. Then", [false, false, false, true]],
    ["no capitals. at all.", [false, true]],
  ])("%j: which are stops", (text, stops) => {
    expect(marksOf(text).map(({ isStop }) => isStop)).toEqual(stops);
  });

  it.each([
    ["It is so. And so on.", false],
    ["Well, it is", false],
    ["He said: “no.” Then", false],
    ["it is so. and so on.", true],
    ["So it is, e.g. here", true],
  ])("%j: whether a stop may be none: %s", (text, is) => {
    expect(marksOf(text).some(({ isDoubtful }) => isDoubtful)).toBe(is);
  });
});
