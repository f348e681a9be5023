/** Whose audio times are of, where they come some chunks behind it. */
import { describe, expect, it } from "vitest";
import { LateTimes } from "../../../../src/timing/repair/late-times.ts";

const span = (startSeconds: number, endSeconds: number) => ({ startSeconds, endSeconds });
const times = (startSeconds: number, endSeconds: number, isTextStart = true) => ({
  startSeconds,
  endSeconds,
  isTextStart,
});

describe("LateTimes", () => {
  it("gives each chunk its own audio where the first one has times", () => {
    const late = new LateTimes();
    expect(late.spanOf(span(0, 0.3), times(0, 0.3))).toEqual(span(0, 0.3));
    expect(late.spanOf(span(0.3, 0.9), null)).toEqual(span(0.3, 0.9));
    expect(late.spanOf(null, times(0.9, 1.2))).toBeNull();
  });

  it.each([1, 0.9, 1.1, 1.23])(
    "gives times that come two chunks late the audio that they are of, at pace %d",
    (pace) => {
      const late = new LateTimes();
      expect(late.spanOf(span(0, 0.3), null)).toEqual(span(0, 0.3));
      late.spanOf(span(0.3, 0.8), null);
      expect(late.spanOf(span(0.8, 1.6), times(0, 0.3 * pace))).toEqual(span(0, 0.3));
      expect(late.spanOf(span(1.6, 1.7), times(0.3 * pace, 0.8 * pace))).toEqual(span(0.3, 0.8));
      // Behind the last audio the rest of the times comes without any.
      expect(late.spanOf(null, null)).toEqual(span(0.8, 1.6));
      expect(late.spanOf(null, null)).toEqual(span(1.6, 1.7));
      expect(late.spanOf(null, times(1.7, 1.8))).toBeNull();
    },
  );

  it.each([
    ["times of a later text: some are missing", times(0, 0.5, false)],
    ["times that begin later: silence came first", times(0.3, 0.8)],
    ["times that no audio so far can have", times(0, 7)],
  ])("is not led astray by %s", (_name, first) => {
    const late = new LateTimes();
    late.spanOf(span(0, 0.3), null);
    expect(late.spanOf(span(0.3, 0.8), first)).toEqual(span(0.3, 0.8));
  });

  it("takes a header's few samples for no audio of a text", () => {
    const late = new LateTimes();
    late.spanOf(span(0, 0.01), null);
    expect(late.spanOf(span(0.01, 0.5), times(0, 0.5))).toEqual(span(0.01, 0.5));
  });
});
