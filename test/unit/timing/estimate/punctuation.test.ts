import { describe, expect, it } from "vitest";
import { punctuationOf } from "../../../../src/timing/estimate/punctuation.ts";

describe("punctuation at which a voice may pause", () => {
  it.each([
    ["Yes. No, well; so. Then", [true, false, false, true]],
    ["今天很好。我们，去", [true, false]],
    ["Lists\n- one", [true]],
    ["approx. five, e.g. this. Then", [false, false, false, true]],
    ["no capitals. at all.", [false, true]],
  ])("%j: which are stops", (text, stops) => {
    expect(punctuationOf(text).map(({ isStop }) => isStop)).toEqual(stops);
  });
});
