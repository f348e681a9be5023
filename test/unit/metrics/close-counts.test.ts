import { expect, it } from "vitest";
import { CloseCounts } from "../../../src/metrics/close-counts.ts";

it("CloseCounts: codes of the standard and of the gateway's errors are labels, all others are one", () => {
  const closes = new CloseCounts();
  for (const code of [1000, 1000, 1006, 4401, 3000, 4999, 2000]) closes.count(code);
  expect(Object.fromEntries(closes.byCode)).toEqual({ "1000": 2, "1006": 1, "4401": 1, other: 3 });
});
