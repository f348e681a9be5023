/** How long a crowd takes through the governor against a client that knows the limit, in simulated time: R4 without the CPU. */
import { describe, expect, it } from "vitest";
import { Random } from "../../../bench/kit/random.ts";
import { Governor } from "../../../src/upstream/governor.ts";
import { type SimulatedRun, type SimulatedUpstream, simulate } from "./governor-simulation.ts";

const REQUESTS = 100;
const MAX_RATIO = 1.05;
const COUNTED = { group: "model", priority: 0 };

/** As in the bench `governor`: the stall and the engine's work, headers with the first audio. */
const BENCH: SimulatedUpstream = {
  limit: 5,
  headMs: () => 236,
  wholeMs: () => 242,
  wayMs: () => 0.3,
  startCostMs: 0.45,
};
/** Speech of 0.9 to 1.5 s by a vendor 20 ms away. */
const VENDOR: SimulatedUpstream = {
  limit: 5,
  headMs: () => 250,
  wholeMs: (index) => 900 + ((index * 37) % 11) * 60,
  wayMs: () => 20,
};

/** 10 to 50 ms: requests arrive in another order than they were sent in. */
function overtaking(): (tries: number) => number {
  const random = new Random(7);
  const ways = Array.from({ length: 1000 }, () => 10 + 40 * random.next());
  return (tries) => ways[tries % ways.length] ?? 0;
}

interface Compared {
  readonly ideal: SimulatedRun;
  /** Nothing was known of the limit; and the same crowd again. */
  readonly unknown: SimulatedRun;
  readonly known: SimulatedRun;
}

/** Ideal: who keeps exactly as many open as are free. */
async function compare(upstream: SimulatedUpstream, requests = REQUESTS): Promise<Compared> {
  const free = upstream.limit - (upstream.others ?? 0);
  const exact = new Governor({ max: free, maxWaiting: requests });
  const governor = new Governor({ max: 1024, maxWaiting: requests });
  return {
    ideal: await simulate(exact, { requests, wanted: { group: null, priority: 0 } }, upstream),
    unknown: await simulate(governor, { requests, wanted: COUNTED }, upstream),
    known: await simulate(governor, { requests, wanted: COUNTED }, upstream),
  };
}

describe("a crowd through the governor, in simulated time", () => {
  it("takes the waves that the limit makes of it, the last one whole, and what one request takes alone", async () => {
    const { ideal: alone } = await compare(BENCH, 1);
    // The place is free before the last byte has come, and the next request is on its way meanwhile.
    expect(alone.makespanMs).toBeCloseTo(242 + 2 * 0.45 + 2 * 0.3);
    for (const requests of [100, 101]) {
      const { ideal, unknown, known } = await compare(BENCH, requests);
      const waves = Math.ceil(requests / BENCH.limit);
      expect(ideal.makespanMs).toBeGreaterThanOrEqual(waves * 242);
      // The five begin one after the other.
      expect(ideal.makespanMs).toBeLessThanOrEqual(waves * alone.makespanMs + BENCH.limit);
      expect(unknown.makespanMs).toBeLessThanOrEqual(MAX_RATIO * ideal.makespanMs);
      expect(known.makespanMs).toBeLessThanOrEqual(MAX_RATIO * ideal.makespanMs);
    }
  });

  it.each([
    ["as in the bench", BENCH],
    ["speech of a vendor", VENDOR],
    ["requests that overtake one another", { ...VENDOR, wayMs: overtaking() }],
    ["short answers that overtake one another", { ...BENCH, wayMs: overtaking() }],
  ])("leaves no place empty once it knows the limit, and is not turned away: %s", async (_, upstream) => {
    const { ideal, unknown, known } = await compare(upstream);
    expect(known.makespanMs).toBeLessThanOrEqual(MAX_RATIO * ideal.makespanMs);
    expect(unknown.makespanMs).toBeLessThanOrEqual(MAX_RATIO * ideal.makespanMs);
    expect(known.turnedAway).toBe(0);
    for (const { idle } of [unknown, known]) expect([idle.heldBack, idle.backingOff]).toEqual([0, 0]);
  });

  it("does not send a whole crowd to find out a small limit", async () => {
    const { unknown } = await compare(BENCH);
    // 32 begin, 5 of them are let through.
    expect(unknown.turnedAway).toBe(27);
  });

  it("shares a limit with others, and is seldom turned away for them", async () => {
    for (const wayMs of [VENDOR.wayMs, overtaking()]) {
      const { ideal, unknown, known } = await compare({ ...VENDOR, limit: 10, others: 5, wayMs });
      expect(unknown.makespanMs).toBeLessThanOrEqual(MAX_RATIO * ideal.makespanMs);
      expect(known.makespanMs).toBeLessThanOrEqual(MAX_RATIO * ideal.makespanMs);
      expect(known.turnedAway).toBeLessThanOrEqual(20);
    }
  });

  it("finds out a limit that the answers do not state", async () => {
    const { ideal, unknown, known } = await compare({ ...BENCH, hasHeaders: false });
    expect(unknown.makespanMs).toBeLessThanOrEqual(MAX_RATIO * ideal.makespanMs);
    expect(known.makespanMs).toBeLessThanOrEqual(MAX_RATIO * ideal.makespanMs);
    // One more is tried now and then.
    expect(known.turnedAway).toBeLessThanOrEqual(REQUESTS / 5);
  });

  it("waits for one answer where the limit is larger than it begins with, and for none after that", async () => {
    for (const hasHeaders of [true, false]) {
      const { ideal, unknown, known } = await compare({ ...BENCH, limit: 1000, hasHeaders });
      expect(unknown.turnedAway).toBe(0);
      expect(unknown.makespanMs).toBeLessThanOrEqual(ideal.makespanMs + BENCH.headMs(0));
      expect(known.makespanMs).toBe(ideal.makespanMs);
    }
  });

  it("says what a place costs that is free only after the last byte: the client is turned away at the handover", async () => {
    const { ideal, known } = await compare({ ...BENCH, lateFreeMs: 5 });
    expect(ideal.turnedAway).toBeGreaterThan(0);
    expect(known.turnedAway).toBeGreaterThan(0);
    expect(known.turnedAway).toBeLessThan(ideal.turnedAway);
  });
});
