import { describe, expect, it } from "vitest";
import { Pacer } from "../../../src/fanout/pacer.ts";
import { FakeClock } from "../../helpers/fake-clock.ts";

function setUp() {
  const clock = new FakeClock();
  return { clock, pacer: new Pacer(clock) };
}

describe("Pacer", () => {
  it("wakes a session at its time and at most one slot later", () => {
    const { clock, pacer } = setUp();
    const wakes: number[] = [];
    const entry = pacer.register({ tick: (nowMs) => wakes.push(nowMs), send: () => undefined });
    entry.wakeAt(clock.nowMs() + 101);
    clock.advance(100);
    expect(wakes).toEqual([]);
    clock.advance(100);
    expect(wakes).toHaveLength(1);
    expect(wakes[0]).toBeGreaterThanOrEqual(1101);
    expect(wakes[0]).toBeLessThanOrEqual(1105);
  });

  it("wakeAt() again moves the wake, never doubles it", () => {
    const { clock, pacer } = setUp();
    const wakes: number[] = [];
    const entry = pacer.register({ tick: (nowMs) => wakes.push(nowMs), send: () => undefined });
    entry.wakeAt(1500);
    entry.wakeAt(1100);
    entry.wakeAt(1300);
    clock.advance(1000);
    expect(wakes).toEqual([1300]);
  });

  it("one timer serves a thousand sessions", () => {
    const { clock, pacer } = setUp();
    let ticks = 0;
    for (let index = 0; index < 1000; index += 1) {
      const entry = pacer.register({
        tick: (nowMs) => {
          ticks += 1;
          entry.wakeAt(nowMs + 100);
        },
        send: () => undefined,
      });
      entry.wakeAt(1000 + (index % 100));
    }
    expect(clock.pending).toBe(1);
    clock.advance(1000);
    expect(ticks).toBeGreaterThan(9000);
    expect(clock.pending).toBe(1);
  });

  it("lets every session of a wake make its own before any sends", () => {
    const { clock, pacer } = setUp();
    const calls: string[] = [];
    for (const name of ["a", "b"]) {
      pacer
        .register({ tick: () => calls.push(`make ${name}`), send: () => calls.push(`send ${name}`) })
        .wakeAt(1100);
    }
    clock.advance(200);
    expect(calls).toEqual(["make a", "make b", "send a", "send b"]);
  });

  it("cancel() and close() leave nothing that wakes", () => {
    const { clock, pacer } = setUp();
    const wakes: string[] = [];
    const first = pacer.register({ tick: () => wakes.push("first"), send: () => undefined });
    const second = pacer.register({ tick: () => wakes.push("second"), send: () => undefined });
    first.wakeAt(1100);
    second.wakeAt(1200);
    first.cancel();
    clock.advance(150);
    pacer.close();
    clock.advance(1000);
    expect(wakes).toEqual([]);
    expect(clock.pending).toBe(0);
  });
});
