/** Which calls a signature has brought, and for how long that is known. */
import { expect, it } from "vitest";
import { SignedCalls } from "../../../src/server/carriers/signed-calls.ts";
import { FakeClock } from "../../helpers/fake-clock.ts";

it("knows a call by its signature and id for ten minutes", () => {
  const clock = new FakeClock();
  const calls = new SignedCalls(clock);
  expect(calls.add("sig", "CA1")).toBe(true);
  expect(calls.add("sig", "CA1")).toBe(false);
  expect(calls.add("sig", "CA2")).toBe(true);
  expect(calls.add("other", "CA1")).toBe(true);
  clock.advance(599_999);
  expect(calls.add("sig", "CA1")).toBe(false);
  clock.advance(1);
  expect(calls.add("sig", "CA1")).toBe(true);
  // The others have gone, too.
  expect(calls.count).toBe(1);
});

it("keeps 100,000 calls, and forgets the oldest first", () => {
  const calls = new SignedCalls(new FakeClock());
  for (let call = 0; call < 100_001; call += 1) calls.add("sig", `CA${call}`);
  expect(calls.count).toBe(100_000);
  expect(calls.add("sig", "CA100000")).toBe(false);
  expect(calls.add("sig", "CA0")).toBe(true);
});
