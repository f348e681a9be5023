/** How often something has happened in the last minute. */
import { expect, it } from "vitest";
import { MinuteCount } from "../../../src/kit/minute-count.ts";

it("MinuteCount: counts what happened in the last minute, to five seconds", () => {
  const errors = new MinuteCount();
  errors.add(1_000_000);
  errors.add(1_000_000);
  errors.add(1_030_000);
  expect(errors.at(1_030_000)).toBe(3);
  expect(errors.at(1_054_999)).toBe(3);
  expect(errors.at(1_060_000)).toBe(1);
  expect(errors.at(1_090_000)).toBe(0);
});

it("MinuteCount: has forgotten everything after a long silence", () => {
  const errors = new MinuteCount();
  errors.add(5000);
  expect(errors.at(100_000_000)).toBe(0);
  errors.add(100_000_000);
  expect(errors.at(100_000_000)).toBe(1);
});
