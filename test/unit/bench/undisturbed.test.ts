import { describe, expect, it } from "vitest";
import type { Histogram } from "../../../bench/kit/histogram.ts";
import { Undisturbed } from "../../../bench/kit/undisturbed.ts";

/** What the host takes in each second, ms; in each of them one duration of 10 ms a second that has passed. */
function measured(takenMs: readonly number[]): number[] {
  return counted(takenMs).counts;
}

function counted(takenMs: readonly number[]): { readonly counts: number[]; readonly histogram: Histogram } {
  let stolenMs = 500;
  const undisturbed = new Undisturbed(() => stolenMs);
  const counts: number[] = [];
  for (const [second, ms] of takenMs.entries()) {
    undisturbed.add(10 * second, 1000 * second + 1);
    stolenMs += ms;
    undisturbed.add(10 * second, 1000 * second + 999);
    counts.push(undisturbed.histogram.count / 2);
  }
  return { counts, histogram: undisturbed.histogram };
}

describe("Undisturbed", () => {
  it("counts seconds in which the host took nothing, once it took nothing behind them either", () => {
    expect(measured([0, 0, 0, 0, 0])).toEqual([0, 0, 0, 1, 2]);
  });

  it("leaves out seconds in which it did, and those before and behind", () => {
    // Seconds 1 and 5: the first has none before it, and the last two are not judged yet.
    expect(measured([0, 0, 0, 300, 0, 0, 0, 0]).at(-1)).toBe(2);
    expect(measured([0, 0, 0, 0, 0, 0, 0, 0]).at(-1)).toBe(5);
  });

  it("counts the durations of those seconds, and only those", () => {
    // Left alone are seconds 1 and 5: durations of 10 and 50 ms, each twice.
    const { histogram } = counted([0, 0, 0, 300, 0, 0, 0, 0]);
    expect(histogram.maxMs).toBe(50);
    expect(histogram.at(0.5)).toBeCloseTo(10, 6);
    expect(histogram.at(0.99)).toBeCloseTo(50, 6);
  });

  it("takes a tick or two for nothing", () => {
    expect(measured([20, 20, 20, 20, 20]).at(-1)).toBe(2);
    expect(measured([30, 30, 30, 30, 30]).at(-1)).toBe(0);
  });
});
