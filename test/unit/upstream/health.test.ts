/** When an upstream counts as down, when it is back, and when it is looked at. */
import { describe, expect, it } from "vitest";
import { Health } from "../../../src/upstream/failover/health.ts";
import { FakeClock } from "../../helpers/fake-clock.ts";

function setUp() {
  const clock = new FakeClock();
  const health = new Health(() => clock.nowMs());
  const checkInMs = (): number => health.checkMs - clock.nowMs();
  /** Jitter is a fifth each way. */
  const expectCheckIn = (ms: number): void => {
    expect(checkInMs()).toBeGreaterThanOrEqual(ms * 0.8);
    expect(checkInMs()).toBeLessThanOrEqual(ms * 1.2);
  };
  return { clock, health, expectCheckIn };
}

describe("Health", () => {
  it("goes down at the first failure of one that never answered, at the third in a row of one that did", () => {
    const fresh = setUp().health;
    expect(fresh.failed()).toBe("down");
    expect(fresh.isUp).toBe(false);
    const { health } = setUp();
    expect(health.answered()).toBeNull();
    expect([health.failed(), health.failed(), health.answered()]).toEqual([null, null, null]);
    expect([health.failed(), health.failed(), health.isUp]).toEqual([null, null, true]);
    expect([health.failed(), health.isUp]).toEqual(["down", false]);
    expect(health.failed()).toBeNull();
  });

  it("comes back with a check, and is down again at the next failure until a request was answered", () => {
    const { health, clock } = setUp();
    health.answered();
    for (let count = 0; count < 3; count += 1) health.failed();
    clock.advance(700);
    expect(health.downForMs).toBe(700);
    expect(health.checked()).toBe("back");
    expect([health.isUp, health.downForMs]).toEqual([true, 0]);
    expect(health.failed()).toBe("down");
    expect(health.answered()).toBe("back");
    expect(health.failed()).toBeNull();
  });

  it("comes back with several checks in a row, where one is not enough", () => {
    const clock = new FakeClock();
    const health = new Health(() => clock.nowMs(), { checksToRise: 2 });
    health.failed();
    expect([health.checked(), health.isUp]).toEqual([null, false]);
    expect(health.checkMs - clock.nowMs()).toBeLessThanOrEqual(1200);
    health.failed();
    expect([health.checked(), health.isUp]).toEqual([null, false]);
    expect([health.checked(), health.isUp]).toEqual(["back", true]);
    health.failed();
    expect(health.answered()).toBe("back");
  });

  it("is checked later each time that it stays down or fails after a check, up to half a minute", () => {
    const { health, expectCheckIn } = setUp();
    health.failed();
    expectCheckIn(1000);
    health.failed();
    expectCheckIn(2000);
    health.checked();
    health.failed();
    expectCheckIn(4000);
    for (let count = 0; count < 20; count += 1) health.failed();
    expectCheckIn(30_000);
    health.answered();
    expectCheckIn(60_000);
    health.failed();
    expectCheckIn(1000);
  });

  it("is checked after a minute without use, and use puts that off unless it is down", () => {
    const { health, clock, expectCheckIn } = setUp();
    expectCheckIn(60_000);
    clock.advance(40_000);
    health.use();
    expectCheckIn(60_000);
    health.failed();
    health.use();
    expectCheckIn(1000);
    health.postpone();
    expectCheckIn(1000);
  });

  it("does not forget requests that failed for a check that was answered", () => {
    const { health } = setUp();
    health.answered();
    health.failed();
    health.failed();
    expect(health.checked()).toBeNull();
    expect(health.failed()).toBe("down");
  });
});
