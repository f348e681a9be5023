/** Whose audio times are of, where they come some chunks behind it. */
import { describe, expect, it } from "vitest";
import { LateTimes } from "../../../../src/timing/repair/late-times.ts";

const span = (startSeconds: number, endSeconds: number) => ({ startSeconds, endSeconds });

describe("LateTimes", () => {
  it("first chunk has times: each chunk has its own audio", () => {
    const late = new LateTimes();
    expect(late.spanOf(span(0, 0.3), true, 0.3)).toEqual(span(0, 0.3));
    expect(late.spanOf(span(0.3, 0.9), false, null)).toEqual(span(0.3, 0.9));
    expect(late.spanOf(null, true, null)).toBeNull();
  });

  it.each([1, 0.9, 1.1, 1.23])("times two chunks late, at rate %d: the audio that they are of", (rate) => {
    const late = new LateTimes();
    expect(late.spanOf(span(0, 0.3), false, null)).toEqual(span(0, 0.3));
    late.spanOf(span(0.3, 0.8), false, null);
    expect(late.spanOf(span(0.8, 1.6), true, 0.3 * rate)).toEqual(span(0, 0.3));
    expect(late.spanOf(span(1.6, 1.7), true, null)).toEqual(span(0.3, 0.8));
    // Behind the last audio the rest of the times comes without any.
    expect(late.spanOf(null, false, null)).toEqual(span(0.8, 1.6));
    expect(late.spanOf(null, false, null)).toEqual(span(1.6, 1.7));
    expect(late.spanOf(null, true, null)).toBeNull();
  });

  it.each([
    ["times of a later text: some are missing", null],
    ["times that no audio so far can have", 7],
  ])("%s: a chunk's own audio", (_name, firstEndSeconds) => {
    const late = new LateTimes();
    late.spanOf(span(0, 0.3), false, null);
    expect(late.spanOf(span(0.3, 0.8), true, firstEndSeconds)).toEqual(span(0.3, 0.8));
  });

  it("a header's few samples: no audio of a text", () => {
    const late = new LateTimes();
    late.spanOf(span(0, 0.01), false, null);
    expect(late.spanOf(span(0.01, 0.5), true, 0.5)).toEqual(span(0.01, 0.5));
  });
});
