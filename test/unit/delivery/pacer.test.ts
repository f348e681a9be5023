import { setImmediate as turn } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { Pacer } from "../../../src/delivery/pacer.ts";
import { FakeClock } from "../../helpers/fake-clock.ts";

/** A fake clock on which work takes time. */
class BusyClock extends FakeClock {
  #spentMs = 0;

  override nowMs(): number {
    return super.nowMs() + this.#spentMs;
  }

  spend(ms: number): void {
    this.#spentMs += ms;
  }
}

function setUp<C extends FakeClock = FakeClock>(clock: C = new FakeClock() as C) {
  return { clock, pacer: new Pacer(clock) };
}

/** One that is played to, and wakes at this time. */
function wakePhone(pacer: Pacer, atMs: number): void {
  pacer.register({ tick: () => undefined, send: () => undefined }, "first").wakeAt(atMs);
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

  it("lets those that are heard at once send before anything is made for the others", () => {
    const { clock, pacer } = setUp();
    const calls: string[] = [];
    const register = (name: string, order?: "first") =>
      pacer.register(
        { tick: () => calls.push(`make ${name}`), send: () => calls.push(`send ${name}`) },
        order,
      );
    register("session").wakeAt(1100);
    register("phone", "first").wakeAt(1100);
    register("other phone", "first").wakeAt(1100);
    clock.advance(200);
    expect(calls).toEqual([
      "make phone",
      "make other phone",
      "send phone",
      "send other phone",
      "make session",
      "send session",
    ]);
  });

  it("does not wake one that was cancelled or moved by one before it in the same wake", () => {
    const { clock, pacer } = setUp();
    const woken: string[] = [];
    const cancelled = pacer.register({ tick: () => woken.push("cancelled"), send: () => undefined });
    const moved = pacer.register({ tick: () => woken.push(`moved ${clock.nowMs()}`), send: () => undefined });
    const first = {
      tick: () => {
        cancelled.cancel();
        moved.wakeAt(1200);
      },
      send: () => undefined,
    };
    cancelled.wakeAt(1100);
    moved.wakeAt(1100);
    pacer.register(first, "first").wakeAt(1100);
    clock.advance(300);
    expect(woken).toEqual(["moved 1200"]);
  });

  it("wakes once where the same time was asked for twice with another between", () => {
    const { clock, pacer } = setUp();
    const wakes: number[] = [];
    const entry = pacer.register({
      tick: (nowMs) => {
        wakes.push(nowMs);
        if (wakes.length === 1) entry.wakeAt(nowMs + 100);
      },
      send: () => undefined,
    });
    for (const atMs of [1100, 1200, 1100]) entry.wakeAt(atMs);
    clock.advance(300);
    expect(wakes).toEqual([1100, 1200]);
  });

  it.each([
    ["no phone was ever played to", null],
    ["the last phone is long gone", 1096],
  ])("wakes all that are due in one go where %s", (_, phoneMs) => {
    const { clock, pacer } = setUp(new BusyClock());
    if (phoneMs !== null) wakePhone(pacer, phoneMs);
    let sent = 0;
    for (let index = 0; index < 5; index += 1) {
      pacer.register({ tick: () => clock.spend(4), send: () => (sent += 1) }).wakeAt(3000);
    }
    clock.advance(2000);
    expect(sent).toBe(5);
  });

  it("lets the event loop turn between groups of many that take long, and wakes every one once", async () => {
    const { clock, pacer } = setUp(new BusyClock());
    wakePhone(pacer, 1096);
    const calls: string[] = [];
    const entries = Array.from({ length: 5 }, (_, at) =>
      pacer.register({
        tick: () => {
          calls.push(`make ${at}`);
          clock.spend(4);
        },
        send: () => calls.push(`send ${at}`),
      }),
    );
    for (const entry of entries) entry.wakeAt(1100);
    setImmediate(() => calls.push("a socket's news"));
    clock.advance(100);
    const group = (...ats: number[]) => [...ats.map((at) => `make ${at}`), ...ats.map((at) => `send ${at}`)];
    expect(calls).toEqual(group(0, 1));
    entries[2]?.cancel();
    await turn();
    await turn();
    expect(calls).toEqual([...group(0, 1), "a socket's news", ...group(3, 4)]);
  });

  it("wakes those that are heard at once all in one go, before any that wait from an earlier wake", async () => {
    const { clock, pacer } = setUp(new BusyClock());
    const calls: string[] = [];
    const busy = (name: string, order: "first" | "after") =>
      pacer.register(
        {
          tick: () => {
            calls.push(name);
            clock.spend(4);
          },
          send: () => undefined,
        },
        order,
      );
    wakePhone(pacer, 1096);
    for (const name of ["a", "b", "c"]) busy(name, "after").wakeAt(1100);
    for (const name of ["p", "q", "r"]) busy(name, "first").wakeAt(1120);
    busy("d", "after").wakeAt(1120);
    clock.advance(120);
    expect(calls).toEqual(["a", "b", "p", "q", "r"]);
    await turn();
    await turn();
    expect(calls).toEqual(["a", "b", "p", "q", "r", "c", "d"]);
  });

  it("close() forgets those that wait for their turn", async () => {
    const { clock, pacer } = setUp(new BusyClock());
    let ticks = 0;
    wakePhone(pacer, 1096);
    for (let index = 0; index < 3; index += 1) {
      pacer
        .register({
          tick: () => {
            ticks += 1;
            clock.spend(8);
          },
          send: () => undefined,
        })
        .wakeAt(1100);
    }
    clock.advance(100);
    pacer.close();
    await turn();
    expect(ticks).toBe(1);
  });

  it("wakeOverdue() wakes what the timer should have woken by now, once, and nothing before its time", () => {
    const { clock, pacer } = setUp(new BusyClock());
    const wakes: number[] = [];
    const entry = pacer.register({ tick: (nowMs) => wakes.push(nowMs), send: () => undefined });
    entry.wakeAt(1100);
    pacer.wakeOverdue();
    // The loop is busy: time goes by, and no timer fires.
    clock.spend(99);
    pacer.wakeOverdue();
    expect(wakes).toEqual([]);
    clock.spend(2);
    pacer.wakeOverdue();
    pacer.wakeOverdue();
    expect(wakes).toEqual([1101]);
    expect(clock.pending).toBe(0);
    entry.wakeAt(1200);
    clock.spend(200);
    pacer.wakeOverdue();
    expect(wakes).toEqual([1101, 1301]);
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
