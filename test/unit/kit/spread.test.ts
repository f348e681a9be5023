/** When clients that are sent away together come back. */
import { expect, it } from "vitest";
import { laterMs } from "../../../src/kit/spread.ts";

it("a few come a millisecond apart, and of many the last waits for two seconds at most", () => {
  expect([0, 1, 2].map((index) => laterMs(index, 3))).toEqual([0, 1, 2]);
  expect(laterMs(0, 100_000)).toBe(0);
  expect(laterMs(50_000, 100_000)).toBe(1000);
  expect(laterMs(99_999, 100_000)).toBe(1999);
});
