/** Faults that tests and the simulation make: nodes of one process that are cut off, and that hang. */
import { describe, expect, it } from "vitest";
import type { Bus } from "../../src/cluster/bus/bus.ts";
import { MemoryHub } from "../../src/cluster/bus/memory-bus.ts";
import { FakeClock } from "../helpers/fake-clock.ts";

const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

async function heardBy(bus: Bus): Promise<number[]> {
  const heard: number[] = [];
  await bus.subscribe("s", (bytes) => heard.push(bytes[0] ?? 0));
  return heard;
}

describe("memory hub", () => {
  it("a node that is cut off loses what is under way to it, and the others go on", async () => {
    const hub = new MemoryHub({ clock: new FakeClock() });
    const [one, two, three] = [hub.open(), hub.open(), hub.open()];
    const [atTwo, atThree] = [await heardBy(two), await heardBy(three)];
    one.publish("s", new Uint8Array([1]));
    two.cut();
    await settle();
    two.heal();
    one.publish("s", new Uint8Array([2]));
    await settle();
    expect([atTwo, atThree]).toEqual([[2], [1, 2]]);
  });

  it("a node that hangs hears all when it wakes, in order; its timers stand until then, requests to it time out", async () => {
    const clock = new FakeClock();
    const hub = new MemoryHub({ clock });
    const [one, two] = [hub.open(), hub.open()];
    const heard = await heardBy(two);
    await two.answer("q", () => new Uint8Array());
    let ticks = 0;
    two.clock.at(clock.nowMs() + 10, () => {
      ticks += 1;
    });
    const cancelled = two.clock.at(clock.nowMs() + 10, () => expect.unreachable("cancelled"));
    two.hang();
    for (const message of [1, 2, 3]) one.publish("s", new Uint8Array([message]));
    const asked = one.request("q", new Uint8Array(), { timeoutMs: 100 }).catch((error: unknown) => error);
    await settle();
    clock.advance(100);
    expect(await asked).toMatchObject({ code: "bus_timeout" });
    cancelled.cancel();
    expect([heard, ticks]).toEqual([[], 0]);
    two.wake();
    expect([heard, ticks]).toEqual([[1, 2, 3], 1]);
    expect(two.state).toBe("up");
  });

  it("a node that hangs for longer than may wait finds its connection gone", async () => {
    const hub = new MemoryHub({ clock: new FakeClock(), maxWaitingBytes: 10_000 });
    const [one, two] = [hub.open(), hub.open()];
    const heard = await heardBy(two);
    const states: string[] = [];
    two.onState((state) => states.push(state));
    two.hang();
    for (let count = 0; count < 20; count += 1) {
      one.publish("s", new Uint8Array(1000));
      await settle();
    }
    two.wake();
    expect([heard, states]).toEqual([[], ["lost", "up"]]);
    one.publish("s", new Uint8Array([7]));
    await settle();
    expect(heard).toEqual([7]);
  });
});
