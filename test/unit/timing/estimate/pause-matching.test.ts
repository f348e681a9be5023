import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { matchPauses, type PlacedPunctuation } from "../../../../src/timing/estimate/pause-matching.ts";

const stop = (weight: number): PlacedPunctuation => ({ weight, isStop: true });
const clause = (weight: number): PlacedPunctuation => ({ weight, isStop: false });

describe("matchPauses", () => {
  it("gives each pause the mark that comes when the voice speaks at its pace", () => {
    const speech = { places: [clause(10), stop(20)], pauses: [1, 2], soundSeconds: 3, endWeight: 30 };
    expect(matchPauses(speech, 10).pairs).toEqual([
      [0, 0],
      [1, 1],
    ]);
  });

  it("passes a comma without a pause, and a pause without a mark", () => {
    const unpaused = { places: [clause(10), stop(20)], pauses: [2], soundSeconds: 3, endWeight: 30 };
    expect(matchPauses(unpaused, 10).pairs).toEqual([[1, 0]]);
    const unmarked = { places: [stop(20)], pauses: [0.7, 2], soundSeconds: 3, endWeight: 30 };
    expect(matchPauses(unmarked, 10).pairs).toEqual([[0, 1]]);
  });

  it("a voice that gets slower on the way is not off for the rest: it counts from one pause to the next", () => {
    const marks = [stop(10), stop(20), stop(30), stop(40), stop(45)];
    const pauses = [1.2, 2.4, 3.6, 4.8, 5.4];
    const speech = { places: marks, pauses, soundSeconds: 6, endWeight: null };
    expect(matchPauses(speech, 10).pairs.map(([mark, pause]) => mark - pause)).toEqual([0, 0, 0, 0, 0]);
  });

  it("asks no pause of marks that are not due, where more text is there than sound", () => {
    const speech = {
      places: [stop(10), stop(20), stop(30)],
      pauses: [1],
      soundSeconds: 1.5,
      endWeight: null,
    };
    const open = matchPauses(speech, 10);
    expect(open.pairs).toEqual([[0, 0]]);
    expect(matchPauses({ ...speech, endWeight: 30 }, 10).cost).toBeGreaterThan(open.cost + 4);
  });

  it("costs more the further the pace is from that of the voice", () => {
    const speech = { places: [stop(10), stop(30)], pauses: [1, 3], soundSeconds: 3.5, endWeight: null };
    const costs = [10, 12, 14, 17].map((pace) => matchPauses(speech, pace).cost);
    expect(costs).toEqual([...costs].sort((a, b) => a - b));
    expect(new Set(costs).size).toBe(costs.length);
  });

  it("pairs rise, whatever is given", () => {
    const rising = (max: number) =>
      fc
        .array(fc.double({ min: 0, max, noNaN: true }), { maxLength: 12 })
        .map((all) => all.sort((a, b) => a - b));
    fc.assert(
      fc.property(rising(100), rising(10), fc.boolean(), (weights, pauses, isEnded) => {
        const marks = weights.map((weight, index) => (index % 2 === 0 ? stop(weight) : clause(weight)));
        const { pairs, cost } = matchPauses(
          { places: marks, pauses, soundSeconds: 10, endWeight: isEnded ? 100 : null },
          10,
        );
        expect(cost).toBeGreaterThanOrEqual(0);
        for (const [i, [mark, pause]] of pairs.entries()) {
          expect(mark).toBeGreaterThan(pairs[i - 1]?.[0] ?? -1);
          expect(pause).toBeGreaterThan(pairs[i - 1]?.[1] ?? -1);
          expect(mark).toBeLessThan(marks.length);
          expect(pause).toBeLessThan(pauses.length);
        }
      }),
    );
  });
});
