/** Permits: bounds, order, and leaving from anywhere in the queue. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Permits, type Release } from "../../../src/upstream/permits.ts";

describe("Permits", () => {
  it("grants in a microtask, in order, and refuses one over the bounds", async () => {
    const permits = new Permits({ max: 1, maxWaiting: 2 });
    const granted: number[] = [];
    const releases = [0, 1, 2].map((id) => permits.request(() => granted.push(id)));
    expect(permits.request(() => granted.push(3))).toBeNull();
    expect(granted).toEqual([]);
    expect([permits.held, permits.waiting]).toEqual([1, 2]);
    for (const release of releases) {
      await Promise.resolve();
      release?.();
      release?.();
    }
    expect(granted).toEqual([0, 1, 2]);
    expect([permits.held, permits.waiting]).toEqual([0, 0]);
  });

  it("never calls a grant after its release", async () => {
    const permits = new Permits({ max: 1, maxWaiting: 1 });
    let calls = 0;
    permits.request(() => {
      calls += 1;
    })?.();
    await Promise.resolve();
    expect(calls).toBe(0);
    expect(permits.held).toBe(0);
  });

  it("keeps its bounds and its order whatever is asked and released", async () => {
    const step = fc.oneof(fc.constant("ask" as const), fc.nat({ max: 30 }));
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
        const permits = new Permits({ max: 3, maxWaiting: 4 });
        const granted: number[] = [];
        const asked: (Release | null)[] = [];
        // The model: who waits, who holds.
        let waiting: number[] = [];
        let holding: number[] = [];
        const expected: number[] = [];
        for (const next of steps) {
          if (next === "ask") {
            const id = asked.length;
            asked.push(permits.request(() => granted.push(id)));
            if (holding.length < 3) {
              holding.push(id);
              expected.push(id);
            } else if (waiting.length < 4) waiting.push(id);
            else expect(asked[id]).toBeNull();
          } else {
            asked[next]?.();
            waiting = waiting.filter((id) => id !== next);
            if (holding.includes(next)) {
              holding = holding.filter((id) => id !== next);
              const [first] = waiting;
              if (first !== undefined) {
                holding.push(first);
                expected.push(first);
                waiting = waiting.slice(1);
              }
            }
          }
          await Promise.resolve();
          expect([permits.held, permits.waiting]).toEqual([holding.length, waiting.length]);
          expect(granted).toEqual(expected);
        }
      }),
      { numRuns: 300 },
    );
  });
});
