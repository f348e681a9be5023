/** Entries of used tokens in the store: src/cluster/claimed-tokens.ts, over buses in memory. */
import { randomUUID } from "node:crypto";
import { describe, expect, it } from "vitest";
import { BUS_VERSION } from "../../src/cluster/bus/heartbeat.ts";
import { MemoryHub } from "../../src/cluster/bus/memory-bus.ts";
import type { NodeView } from "../../src/cluster/bus/node-registry.ts";
import { ClaimedTokens } from "../../src/cluster/claimed-tokens.ts";
import { FakeClock } from "../helpers/fake-clock.ts";

const FACTS = { url: "", load: 0, isDraining: false, buddy: null, machine: "" };
const HOUR_MS = 3_600_000;

function cluster() {
  const clock = new FakeClock();
  const hub = new MemoryHub({ clock });
  const views: NodeView[] = [];
  let jumpedMs = 0;
  const join = (name: string) => {
    const bus = hub.open();
    const incarnation = randomUUID();
    views.push({ name, incarnation, state: "alive", version: BUS_VERSION, facts: FACTS });
    const nodes = { name, incarnation, nodes: views };
    return {
      bus,
      tokens: new ClaimedTokens({ bus, nodes, clock: bus.clock, wallMs: () => clock.nowMs() + jumpedMs }),
    };
  };
  const jump = (ms: number): void => {
    jumpedMs += ms;
  };
  const leave = (name: string): void => {
    for (const [index, view] of views.entries())
      if (view.name === name) views[index] = { ...view, state: "gone" };
  };
  const pass = async (ms: number): Promise<void> => {
    for (let passed = 0; passed < ms; passed += 10_000) {
      clock.advance(10_000);
      await new Promise((resolve) => setImmediate(resolve));
    }
  };
  return { hub, join, jump, leave, pass, until: (ms: number) => clock.nowMs() + ms };
}

describe("used tokens", () => {
  it("are one node's, also where two ask at once; what was let go is free", async () => {
    const { join, until } = cluster();
    const [a, b] = [join("a"), join("b")];
    const untilMs = until(60_000);
    const answers = await Promise.all([a, b, a].map(({ tokens }) => tokens.claimToken("t", untilMs)));
    expect(answers.filter(Boolean)).toHaveLength(1);
    expect(await b.tokens.claimToken("t", untilMs)).toBe(false);
    a.tokens.releaseToken("t");
    expect(await b.tokens.claimToken("t", untilMs)).toBe(true);
    a.tokens.releaseToken("t");
    expect(await a.tokens.claimToken("t", untilMs)).toBe(false);
  });

  it("leave nothing behind once they have expired", async () => {
    const { hub, join, pass, until } = cluster();
    const a = join("a");
    for (let count = 0; count < 50; count += 1) await a.tokens.claimToken(`t${count}`, until(60_000));
    await pass(50_000);
    expect([hub.owners.entries.length, a.tokens.held]).toEqual([50, 50]);
    await pass(20_000);
    expect([hub.owners.entries.length, a.tokens.held]).toEqual([0, 0]);
  });

  it("tokens of a node that is gone are released by the first that lives, when they have expired and not before", async () => {
    const { hub, join, leave, pass, until } = cluster();
    const [a, b] = [join("a"), join("b")];
    await a.tokens.claimToken("old", until(60_000));
    await a.tokens.claimToken("new", until(HOUR_MS));
    await b.tokens.claimToken("own", until(HOUR_MS));
    a.tokens.close();
    leave("a");
    // An hour beyond its end: clocks of two machines differ.
    await pass(HOUR_MS - 60_000);
    expect(hub.owners.entries).toHaveLength(3);
    await pass(2 * 660_000);
    expect(hub.owners.entries).toHaveLength(1);
    await pass(HOUR_MS);
    expect(hub.owners.entries).toEqual([]);
  });

  it("are not good again where the wall clock of their node jumps ahead", async () => {
    const { hub, join, jump, pass, until } = cluster();
    const [a, b] = [join("a"), join("b")];
    await a.tokens.claimToken("t", until(60_000));
    jump(600_000);
    await pass(30_000);
    expect(hub.owners.entries).toHaveLength(1);
    expect(await b.tokens.claimToken("t", until(60_000))).toBe(false);
  });

  it("whose claim was written and not answered are taken by the same node again", async () => {
    const { join, until } = cluster();
    const [a, b] = [join("a"), join("b")];
    const claim = a.bus.owners.claim.bind(a.bus.owners);
    a.bus.owners.claim = async (...asked) => {
      await claim(...asked);
      throw new Error("The answer was lost");
    };
    await expect(a.tokens.claimToken("t", until(60_000))).rejects.toMatchObject({ retryAfterMs: 1000 });
    a.bus.owners.claim = claim;
    expect(await b.tokens.claimToken("t", until(60_000))).toBe(false);
    expect(await a.tokens.claimToken("t", until(60_000))).toBe(true);
  });

  it("are written again where the store was lost", async () => {
    const { hub, join, pass, until } = cluster();
    const [a, b] = [join("a"), join("b")];
    await a.tokens.claimToken("t", until(HOUR_MS));
    for (const { bus } of [a, b]) bus.cut();
    hub.loseStore();
    for (const { bus } of [a, b]) bus.heal();
    await pass(10_000);
    expect(await b.tokens.claimToken("t", until(HOUR_MS))).toBe(false);
  });

  it("are refused with a time where the store can't be asked", async () => {
    const { join, until } = cluster();
    const a = join("a");
    a.bus.cut();
    await expect(a.tokens.claimToken("t", until(60_000))).rejects.toMatchObject({
      code: "bus_lost",
      retryAfterMs: 1000,
    });
  });
});
