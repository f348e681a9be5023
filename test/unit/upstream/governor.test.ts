/** Who may ask: bounds, order, leaving from anywhere in the queue, and what the upstream says of its limit. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Governor, type Permit } from "../../../src/upstream/governor.ts";

const ANY = { group: "g", priority: 0 };

function limitOf(governor: Governor, group: string): number | undefined {
  return governor.limits(10).find((known) => known.group === group)?.limit;
}

describe("Governor", () => {
  it("grants in a microtask, in order, and refuses one over the bounds", async () => {
    const permits = new Governor({ max: 1, maxWaiting: 2 });
    const granted: number[] = [];
    const releases = [0, 1, 2].map((id) => permits.request(ANY, () => granted.push(id)));
    expect(permits.request(ANY, () => granted.push(3))).toBeNull();
    expect(granted).toEqual([]);
    expect([permits.held, permits.waiting]).toEqual([1, 2]);
    for (const release of releases) {
      await Promise.resolve();
      release?.release();
      release?.release();
    }
    expect(granted).toEqual([0, 1, 2]);
    expect([permits.held, permits.waiting]).toEqual([0, 0]);
  });

  it("never calls a grant after its release", async () => {
    const permits = new Governor({ max: 1, maxWaiting: 1 });
    let calls = 0;
    permits
      .request(ANY, () => {
        calls += 1;
      })
      ?.release();
    await Promise.resolve();
    expect(calls).toBe(0);
    expect(permits.held).toBe(0);
  });

  it("keeps its bounds and its order whatever is asked and released", async () => {
    const step = fc.oneof(fc.constant("ask" as const), fc.nat({ max: 30 }));
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
        const permits = new Governor({ max: 3, maxWaiting: 4 });
        const granted: number[] = [];
        const asked: (Permit | null)[] = [];
        // The model: who waits, who holds.
        let waiting: number[] = [];
        let holding: number[] = [];
        const expected: number[] = [];
        for (const next of steps) {
          if (next === "ask") {
            const id = asked.length;
            asked.push(permits.request(ANY, () => granted.push(id)));
            if (holding.length < 3) {
              holding.push(id);
              expected.push(id);
            } else if (waiting.length < 4) waiting.push(id);
            else expect(asked[id]).toBeNull();
          } else {
            asked[next]?.release();
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

  /** Asks `count` times, and returns who was granted, in order. */
  function crowd(governor: Governor, group: string, count: number, priority = 0) {
    const granted: number[] = [];
    const permits = Array.from({ length: count }, (_, id) =>
      governor.request({ group, priority }, () => granted.push(id)),
    );
    return { granted, permits };
  }

  it("holds a group to what an answer's headers allow, less what others have open", async () => {
    const governor = new Governor({ max: 100, maxWaiting: 100 });
    const first = governor.request(ANY, () => undefined);
    await Promise.resolve();
    // Five may be open; this one is one of three, so two are somebody else's.
    first?.learn(3, 5);
    const { granted, permits } = crowd(governor, "g", 6);
    await Promise.resolve();
    expect(granted).toEqual([0, 1]);
    expect(limitOf(governor, "g")).toBe(3);
    permits[0]?.release();
    await Promise.resolve();
    expect(granted).toEqual([0, 1, 2]);
    // The others have gone.
    permits[2]?.learn(3, 5);
    await Promise.resolve();
    expect(granted).toEqual([0, 1, 2, 3, 4]);
  });

  it("does not hold up another group, nor let a group wait for nothing", async () => {
    const governor = new Governor({ max: 100, maxWaiting: 100 });
    const full = crowd(governor, "slow", 1);
    await Promise.resolve();
    full.permits[0]?.learn(1, 1);
    const waiting = crowd(governor, "slow", 2);
    const other = crowd(governor, "fast", 2);
    await Promise.resolve();
    expect(waiting.granted).toEqual([]);
    expect(other.granted).toEqual([0, 1]);
    full.permits[0]?.learn(7, 1);
    expect(limitOf(governor, "slow")).toBe(1);
  });

  it("takes one less than were open for the limit after a 429, and creeps up again where answers say nothing", async () => {
    const governor = new Governor({ max: 100, maxWaiting: 100 });
    const { permits } = crowd(governor, "g", 8);
    await Promise.resolve();
    for (const permit of permits.slice(5)) {
      permit?.turnAway();
      permit?.release();
    }
    expect(limitOf(governor, "g")).toBe(5);
    for (let answers = 0; answers < 6; answers += 1) permits[0]?.succeed();
    expect(limitOf(governor, "g")).toBe(6);
    for (const permit of permits) permit?.release();
    const alone = governor.request(ANY, () => undefined);
    await Promise.resolve();
    alone?.turnAway();
    expect(limitOf(governor, "g")).toBe(1);
  });

  it("lets a higher priority go first, and keeps the order within one", async () => {
    const governor = new Governor({ max: 1, maxWaiting: 100 });
    const holder = governor.request(ANY, () => undefined);
    const order: string[] = [];
    const ask = (name: string, priority: number, group = "g") =>
      governor.request({ group, priority }, () => order.push(name));
    const permits = [ask("a", 0), ask("b", 5), ask("c", -1), ask("d", 5, "h"), ask("e", 0)];
    permits[4]?.release();
    holder?.release();
    for (const next of [1, 3, 0, 2]) {
      await Promise.resolve();
      permits[next]?.release();
    }
    expect(order).toEqual(["b", "d", "a", "c"]);
    expect([governor.held, governor.waiting]).toEqual([0, 0]);
  });

  it("lets a few go while nothing is known, four for each answer that says nothing, and reports no limit", async () => {
    const governor = new Governor({ max: 1000, maxWaiting: 1000 });
    const { granted, permits } = crowd(governor, "g", 200);
    await Promise.resolve();
    expect(granted).toHaveLength(32);
    for (const permit of permits.slice(0, 32)) {
      permit?.succeed();
      permit?.release();
    }
    await Promise.resolve();
    expect(granted).toHaveLength(32 + 4 * 32);
    expect(limitOf(governor, "g")).toBeUndefined();
  });

  it("takes none of its own for somebody else's where they overtake one another", async () => {
    const governor = new Governor({ max: 100, maxWaiting: 100 });
    const { permits } = crowd(governor, "g", 5);
    await Promise.resolve();
    // The one that was granted first came last.
    for (const [index, current] of [5, 1, 2, 3, 4].entries()) {
      permits[index]?.learn(current, 5);
      expect(limitOf(governor, "g")).toBe(5);
    }
  });

  it("counts who is granted behind one that was turned away as its own", async () => {
    const governor = new Governor({ max: 100, maxWaiting: 100 });
    const { permits } = crowd(governor, "g", 3);
    await Promise.resolve();
    permits[2]?.turnAway();
    permits[2]?.release();
    permits[1]?.learn(2, 10);
    governor.request(ANY, () => undefined);
    // It was overtaken by the one behind: all three are its own.
    permits[0]?.learn(3, 10);
    expect(limitOf(governor, "g")).toBe(10);
  });

  it("holds what is of no group to the bound of all, whatever the answers say", async () => {
    const governor = new Governor({ max: 50, maxWaiting: 100 });
    const granted: number[] = [];
    const permits = Array.from({ length: 60 }, (_, id) =>
      governor.request({ group: null, priority: 0 }, () => granted.push(id)),
    );
    await Promise.resolve();
    expect(granted).toHaveLength(50);
    permits[0]?.turnAway();
    permits[1]?.learn(5, 5);
    permits[2]?.succeed();
    permits[0]?.release();
    await Promise.resolve();
    expect(granted).toHaveLength(51);
    expect(governor.limits(10)).toEqual([]);
  });

  it("forgets groups that nothing is asked of", () => {
    const governor = new Governor({ max: 1, maxWaiting: 1 });
    for (let name = 0; name < 10_000; name += 1)
      governor.request({ group: `model ${name}`, priority: 0 }, () => undefined)?.release();
    expect([governor.held, governor.waiting]).toEqual([0, 0]);
  });
});
