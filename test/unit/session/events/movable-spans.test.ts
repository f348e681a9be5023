import { describe, expect, it } from "vitest";
import { MovableSpans } from "../../../../src/session/events/movable-spans.ts";
import type { Span } from "../../../../src/session/playback/transcript.ts";

function noted(...places: readonly (readonly [number, number])[]) {
  const movable = new MovableSpans();
  const stretches = places.map(([startTicks, endTicks]): Span => ({ startTicks, endTicks }));
  for (const stretch of stretches) movable.add(stretch);
  return { movable, places: () => stretches.map(({ startTicks, endTicks }) => [startTicks, endTicks]) };
}

describe("MovableSpans", () => {
  it("moves all where the lead is dropped, never before the segment", () => {
    const { movable, places } = noted([100, 130], [130, 200], [200, 260]);
    movable.dropLead(100, 50);
    expect(places()).toEqual([
      [100, 100],
      [100, 150],
      [150, 210],
    ]);
  });

  it("ends all with the audio", () => {
    const { movable, places } = noted([100, 130], [130, 200], [200, 260]);
    movable.endAt(150);
    expect(places()).toEqual([
      [100, 130],
      [130, 150],
      [150, 150],
    ]);
  });

  it("lets go of what is pushed where it holds over 128, not before and not the rest", () => {
    const tenEach = (count: number) =>
      Array.from({ length: count }, (_, at) => [at * 10, at * 10 + 10] as const);
    const few = noted(...tenEach(128));
    few.movable.forgetBefore(1000);
    few.movable.endAt(500);
    expect(few.places()[99]).toEqual([500, 500]);
    const many = noted(...tenEach(129));
    many.movable.forgetBefore(1000);
    many.movable.endAt(500);
    expect(many.places()[99]).toEqual([990, 1000]);
    expect(many.places()[100]).toEqual([500, 500]);
  });
});
