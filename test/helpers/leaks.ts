/** For each test file: nothing that it said, and no key or token, stands in a log of what it started. */
import { afterAll, expect } from "vitest";
import { watch } from "./watched-log.ts";

afterAll(() => {
  expect(watch.takeLeaks()).toEqual([]);
});
