/** Who may ask: bounds, order, leaving from anywhere in the queue, and what the upstream says of its limit. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Answers, Governor, type Permit, type Subject } from "../../../src/upstream/governor.ts";

const ANY = { group: "g", priority: 0 };

function granting(grant: () => void): Answers {
  return { grant, turnOut: () => undefined };
}

function limitOf(governor: Governor, group: string): number | undefined {
  return governor.limits(10).find((known) => known.group === group)?.limit;
}

describe("Governor", () => {
  it("grants in a microtask, in order, and refuses one over the bounds", async () => {
    const permits = new Governor({ max: 1, maxWaiting: 2 });
    const granted: number[] = [];
    const releases = [0, 1, 2].map((id) =>
      permits.request(
        ANY,
        granting(() => granted.push(id)),
      ),
    );
    expect(
      permits.request(
        ANY,
        granting(() => granted.push(3)),
      ),
    ).toBeNull();
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
      .request(
        ANY,
        granting(() => {
          calls += 1;
        }),
      )
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
            asked.push(
              permits.request(
                ANY,
                granting(() => granted.push(id)),
              ),
            );
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
      governor.request(
        { group, priority },
        granting(() => granted.push(id)),
      ),
    );
    return { granted, permits };
  }

  it("holds a group to what an answer's headers allow, less what others have open", async () => {
    const governor = new Governor({ max: 100, maxWaiting: 100 });
    const first = governor.request(
      ANY,
      granting(() => undefined),
    );
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
    const alone = governor.request(
      ANY,
      granting(() => undefined),
    );
    await Promise.resolve();
    alone?.turnAway();
    expect(limitOf(governor, "g")).toBe(1);
  });

  it("of a service that never says its limit: half of it once for a crowd, one more for each round at the limit", async () => {
    const governor = new Governor({ max: 100, maxWaiting: 100, startLimit: 8, isAdditive: true });
    const { permits, granted } = crowd(governor, "g", 8);
    await Promise.resolve();
    expect(granted).toHaveLength(8);
    for (const permit of permits.slice(4)) permit?.turnAway();
    // The first of them that was turned away was the fifth.
    expect(limitOf(governor, "g")).toBe(2);
    for (const permit of permits) permit?.release();
    for (let round = 0; round < 4; round += 1) {
      const asked = crowd(governor, "g", 1);
      await Promise.resolve();
      asked.permits[0]?.succeed();
      asked.permits[0]?.release();
    }
    // One alone is no sign that two, or three, are let through.
    expect(limitOf(governor, "g")).toBe(2);
    for (let round = 0; round < 2; round += 1) {
      const asked = crowd(governor, "g", 2);
      await Promise.resolve();
      for (const permit of asked.permits) permit?.succeed();
      for (const permit of asked.permits) permit?.release();
    }
    expect(limitOf(governor, "g")).toBe(3);
    const alone = crowd(governor, "g", 1);
    await Promise.resolve();
    alone.permits[0]?.turnAway();
    expect(limitOf(governor, "g")).toBe(1);
  });

  it("lets a higher priority go first, and keeps the order within one", async () => {
    const governor = new Governor({ max: 1, maxWaiting: 100 });
    const holder = governor.request(
      ANY,
      granting(() => undefined),
    );
    const order: string[] = [];
    const ask = (name: string, priority: number, group = "g") =>
      governor.request(
        { group, priority },
        granting(() => order.push(name)),
      );
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
    governor.request(
      ANY,
      granting(() => undefined),
    );
    // It was overtaken by the one behind: all three are its own.
    permits[0]?.learn(3, 10);
    expect(limitOf(governor, "g")).toBe(10);
  });

  it("holds what is of no group to the bound of all, whatever the answers say", async () => {
    const governor = new Governor({ max: 50, maxWaiting: 100 });
    const granted: number[] = [];
    const permits = Array.from({ length: 60 }, (_, id) =>
      governor.request(
        { group: null, priority: 0 },
        granting(() => granted.push(id)),
      ),
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
      governor
        .request(
          { group: `model ${name}`, priority: 0 },
          granting(() => undefined),
        )
        ?.release();
    expect([governor.held, governor.waiting]).toEqual([0, 0]);
  });
});

describe("Governor, between subjects", () => {
  const subjectOf = (id: string, maxPlaces = Number.POSITIVE_INFINITY): Subject => ({ id, maxPlaces });
  const ANN = subjectOf("ann");
  const BEN = subjectOf("ben");

  /** Whose requests were granted, in order, and their permits. */
  function served(governor: Governor) {
    const granted: string[] = [];
    const turnedOut: string[] = [];
    const open: Permit[] = [];
    const ask = (
      subject: Subject,
      { name = subject.id, priority = 0, group = "g" as string | null } = {},
    ) => {
      const permit: Permit | null = governor.request(
        { group, priority, subject },
        {
          grant: () => {
            granted.push(name);
            if (permit !== null) open.push(permit);
          },
          turnOut: () => turnedOut.push(name),
        },
      );
      return permit;
    };
    /** The one that was granted first has been answered. */
    const answer = async (): Promise<void> => {
      open.shift()?.release();
      await Promise.resolve();
    };
    return { granted, turnedOut, ask, answer };
  }

  it("one that comes waits for one answer at most, however many another has waiting, and of what priority", async () => {
    const { granted, ask, answer } = served(new Governor({ max: 1, maxWaiting: 1000 }));
    for (let count = 0; count < 200; count += 1) ask(ANN, { priority: 5 });
    await Promise.resolve();
    ask(BEN);
    await answer();
    expect(granted).toEqual(["ann", "ben"]);
  });

  it("they take turns while both wait, and each has half of the places", async () => {
    const { granted, ask, answer } = served(new Governor({ max: 4, maxWaiting: 1000 }));
    for (let count = 0; count < 40; count += 1) ask(ANN);
    await Promise.resolve();
    for (let count = 0; count < 40; count += 1) ask(BEN);
    for (let count = 0; count < 40; count += 1) await answer();
    expect(granted.slice(0, 4)).toEqual(["ann", "ann", "ann", "ann"]);
    expect(granted.slice(4).filter((name) => name === "ben").length).toBeGreaterThanOrEqual(20);
    expect(granted.slice(4).filter((name) => name === "ann").length).toBeGreaterThanOrEqual(18);
  });

  it("one has all places where nobody else waits, unless it has a bound of its own", async () => {
    const { granted, ask, answer } = served(new Governor({ max: 8, maxWaiting: 100 }));
    for (let count = 0; count < 8; count += 1) ask(ANN);
    await Promise.resolve();
    expect(granted).toHaveLength(8);
    const bounded = served(new Governor({ max: 8, maxWaiting: 100 }));
    for (let count = 0; count < 8; count += 1) bounded.ask(subjectOf("cid", 2), { group: `model ${count}` });
    await Promise.resolve();
    expect(bounded.granted).toHaveLength(2);
    await bounded.answer();
    expect(bounded.granted).toHaveLength(3);
    await answer();
  });

  it("priorities count within a subject, across its models", async () => {
    const { granted, ask, answer } = served(new Governor({ max: 1, maxWaiting: 100 }));
    ask(ANN, { name: "first" });
    await Promise.resolve();
    ask(ANN, { name: "low" });
    ask(ANN, { name: "high", priority: 9, group: "h" });
    await answer();
    await answer();
    expect(granted).toEqual(["first", "high", "low"]);
  });

  it("one that goes on coming back does not starve another", async () => {
    const { granted, ask, answer } = served(new Governor({ max: 1, maxWaiting: 100 }));
    ask(BEN, { name: "first" });
    await Promise.resolve();
    ask(BEN);
    for (let count = 0; count < 5; count += 1) {
      ask(subjectOf(`new ${count}`));
      await answer();
    }
    expect(granted.slice(0, 3)).toContain("ben");
  });

  it("who has fewer waiting takes a full queue's place from who has the most: its last, of the lowest priority", async () => {
    const governor = new Governor({ max: 1, maxWaiting: 3 });
    const { granted, turnedOut, ask, answer } = served(governor);
    ask(ANN, { name: "0" });
    for (const [name, priority] of [
      ["1", 0],
      ["2", -1],
      ["3", 0],
    ] as const) {
      ask(ANN, { name, priority });
    }
    await Promise.resolve();
    expect(ask(ANN)).toBeNull();
    expect(ask(BEN)).not.toBeNull();
    await Promise.resolve();
    expect(turnedOut).toEqual(["2"]);
    expect(ask(BEN)).toBeNull();
    for (let count = 0; count < 4; count += 1) await answer();
    expect(granted).toEqual(["0", "ben", "1", "3"]);
    expect([governor.held, governor.waiting]).toEqual([0, 0]);
  });

  it("grants as much as its bounds allow, and nothing beyond them, whoever asks and leaves", async () => {
    const step = fc.oneof(
      fc.record({ by: fc.nat({ max: 3 }), priority: fc.nat({ max: 2 }), model: fc.nat({ max: 1 }) }),
      fc.nat({ max: 40 }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 80 }), async (steps) => {
        const governor = new Governor({ max: 4, maxWaiting: 6 });
        const asked: { permit: Permit | null; by: number; state: "waiting" | "open" | "gone" }[] = [];
        for (const next of steps) {
          if (typeof next === "number") {
            const one = asked[next];
            one?.permit?.release();
            if (one !== undefined) one.state = "gone";
          } else {
            const one: (typeof asked)[number] = { permit: null, by: next.by, state: "waiting" };
            asked.push(one);
            one.permit = governor.request(
              {
                group: `m${next.model}`,
                priority: next.priority,
                subject: subjectOf(String(next.by), 2),
              },
              {
                grant: () => {
                  expect(one.state).toBe("waiting");
                  one.state = "open";
                },
                turnOut: () => {
                  one.state = "gone";
                },
              },
            );
            if (one.permit === null) one.state = "gone";
          }
          await Promise.resolve();
          const open = asked.filter(({ state }) => state === "open");
          const waiting = asked.filter(({ state }) => state === "waiting");
          expect([governor.held, governor.waiting]).toEqual([open.length, waiting.length]);
          const heldBy = [0, 1, 2, 3].map((by) => open.filter((one) => one.by === by).length);
          expect(Math.max(...heldBy)).toBeLessThanOrEqual(2);
          // Nobody waits who could be served.
          if (open.length < 4) expect(waiting.every(({ by }) => heldBy[by] === 2)).toBe(true);
        }
      }),
      { numRuns: 300 },
    );
  });
});
