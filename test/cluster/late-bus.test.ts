/** A node that started while no server could be reached: alone at first, then one of several. */
import { describe, expect, it } from "vitest";
import type { Bus } from "../../src/cluster/bus/bus.ts";
import { LateBus } from "../../src/cluster/bus/late-bus.ts";
import { type MemoryBus, MemoryHub } from "../../src/cluster/bus/memory-bus.ts";
import { type ErrorCode, GatewayError } from "../../src/errors.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import { watchedLog } from "../helpers/watched-log.ts";

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const text = (data: Uint8Array | undefined): string => new TextDecoder().decode(data);
/** Longer than the longest wait between two tries. */
const TRIES_MS = 10_000;

/** Promises that wait for one another are settled by then. */
async function settled(): Promise<void> {
  for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

async function startAlone(code: ErrorCode = "bus_lost") {
  const clock = new FakeClock();
  const hub = new MemoryHub({ clock });
  const other = hub.open();
  let isUp = false;
  let tries = 0;
  const opened: MemoryBus[] = [];
  const connect = async (): Promise<Bus> => {
    tries += 1;
    if (!isUp) throw new GatewayError(code, "No server");
    const bus = hub.open();
    opened.push(bus);
    return bus;
  };
  const bus = await LateBus.open({ connect, clock, log: watchedLog });
  const states: string[] = [];
  bus.onState((state) => states.push(state));
  return {
    bus,
    other,
    hub,
    states,
    opened,
    tries: () => tries,
    wait: async () => {
      clock.advance(TRIES_MS);
      await settled();
    },
    comes: async () => {
      isUp = true;
      clock.advance(TRIES_MS);
      await settled();
    },
  };
}

describe("a bus that comes late", () => {
  it("serves alone until then: claims, messages and requests inside the node", async () => {
    const { bus, tries, wait } = await startAlone();
    const heard: string[] = [];
    await bus.subscribe("s", (data) => heard.push(text(data)));
    bus.publish("s", bytes("me"));
    await settled();
    expect(heard).toEqual(["me"]);
    expect((await bus.owners.claim("k", bytes("1"))).isOurs).toBe(true);
    await bus.answer("q", (data) => data);
    expect(text(await bus.request("q", bytes("x"), { timeoutMs: 1000 }))).toBe("x");
    expect(bus.state).toBe("up");
    await wait();
    expect(tries()).toBeGreaterThan(1);
    await bus.close();
    const before = tries();
    await wait();
    expect(tries()).toBe(before);
  });

  it("is heard and answers there once it has come; those who use it see a loss and a return", async () => {
    const { bus, other, states, comes } = await startAlone();
    const heard: string[] = [];
    await bus.subscribe("s", (data) => heard.push(text(data)));
    const ended = await bus.subscribe("s", () => expect.unreachable("ended before"));
    ended.close();
    await bus.answer("q", () => bytes("here"));
    await comes();
    expect(states).toEqual(["lost", "up"]);
    other.publish("s", bytes("hello"));
    await settled();
    expect(heard).toEqual(["hello"]);
    expect(text(await other.request("q", bytes(""), { timeoutMs: 1000 }))).toBe("here");
    await bus.close();
    expect(states).toEqual(["lost", "up", "closed"]);
  });

  it("is up at once, and reaches its server when that is there", async () => {
    const { bus, opened, comes } = await startAlone();
    expect([bus.state, bus.isReached]).toEqual(["up", false]);
    await comes();
    expect([bus.state, bus.isReached]).toEqual(["up", true]);
    for (const server of opened) server.cut();
    expect(bus.isReached).toBe(false);
    await bus.close();
  });

  it("watchers hear what differs there, and entries of before are good no more", async () => {
    const { bus, other, comes } = await startAlone();
    await other.owners.claim("s.theirs", bytes("other"));
    await other.owners.claim("s.both", bytes("other"));
    const { entry } = await bus.owners.claim("s.both", bytes("mine"));
    await bus.owners.claim("s.mine", bytes("mine"));
    const changes: string[] = [];
    await bus.owners.watch("s.", ({ key, entry: now }) => changes.push(`${key} ${text(now?.value)}`));
    expect(changes.splice(0).sort()).toEqual(["s.both mine", "s.mine mine"]);
    await comes();
    expect(changes.sort()).toEqual(["s.both other", "s.mine ", "s.theirs other"]);
    expect(await bus.owners.renew(entry, bytes("again"))).toBeUndefined();
    expect(await bus.owners.release(entry)).toBe(false);
    expect(text((await other.owners.find("s.both"))?.value)).toBe("other");
    await bus.close();
  });

  it("is on another bus until then where one is given, and leaves it", async () => {
    const clock = new FakeClock();
    const [meanwhile, hub] = [new MemoryHub({ clock }), new MemoryHub({ clock })];
    let tries = 0;
    const connect = async (): Promise<Bus> => {
      tries += 1;
      if (tries === 1) throw new GatewayError("bus_lost", "No server");
      return hub.open();
    };
    const openMeanwhile = (): Bus => meanwhile.open();
    const bus = await LateBus.open({ connect, openMeanwhile, clock, log: watchedLog });
    await bus.answer("q", () => bytes("here"));
    const [before, after] = [meanwhile.open(), hub.open()];
    expect(text(await before.request("q", bytes(""), { timeoutMs: 1000 }))).toBe("here");
    clock.advance(TRIES_MS);
    await settled();
    expect(text(await after.request("q", bytes(""), { timeoutMs: 1000 }))).toBe("here");
    const asked = before.request("q", bytes(""), { timeoutMs: 1000 });
    await expect(asked).rejects.toMatchObject({ code: "bus_no_answer" });
    await bus.close();
  });

  it("stays alone where it is lost again before all has gone over, and tries on", async () => {
    const { bus, hub, states, opened, comes, wait } = await startAlone();
    const heard: string[] = [];
    await bus.subscribe("s", (data) => heard.push(text(data)));
    const open = hub.open.bind(hub);
    hub.open = () => {
      const broken = open();
      broken.cut();
      return broken;
    };
    await comes();
    expect(opened).toHaveLength(1);
    expect(opened[0]?.state).toBe("closed");
    expect(states).toEqual([]);
    hub.open = open;
    await wait();
    expect(states).toEqual(["lost", "up"]);
    await bus.close();
  });

  it("does not wait for what waiting does not mend", async () => {
    await expect(startAlone("bus_refused")).rejects.toMatchObject({ code: "bus_refused" });
  });
});
