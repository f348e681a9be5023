import { describe, expect, test } from "vitest";
import { PlayoutClock } from "../../../src/cli/output/playout.ts";
import { FakeClock } from "../../helpers/fake-clock.ts";

describe("PlayoutClock", () => {
  test("starts with the first frame and runs with the clock while frames are ahead", () => {
    const clock = new FakeClock();
    const playout = new PlayoutClock(clock);
    expect(playout.positionMs()).toBe(0);
    for (let end = 20; end <= 300; end += 20) playout.frame(end, 20);
    expect(playout.positionMs()).toBe(0);
    clock.advance(150);
    expect(playout.positionMs()).toBe(150);
  });

  test("starts where a listener joins a timeline that has run before", () => {
    const clock = new FakeClock();
    const playout = new PlayoutClock(clock);
    playout.frame(60_020, 20);
    expect(playout.positionMs()).toBe(60_000);
  });

  test("stands still when frames run out and goes on from there with the next one", () => {
    const clock = new FakeClock();
    const playout = new PlayoutClock(clock);
    playout.frame(20, 20);
    playout.frame(40, 20);
    clock.advance(500);
    expect(playout.positionMs()).toBe(40);
    playout.frame(60, 20);
    expect(playout.positionMs()).toBe(40);
    clock.advance(10);
    expect(playout.positionMs()).toBe(50);
  });

  test("never goes back when frames come early", () => {
    const clock = new FakeClock();
    const playout = new PlayoutClock(clock);
    let last = 0;
    for (let end = 20; end < 2000; end += 20) {
      playout.frame(end, 20);
      clock.advance(end % 60 === 0 ? 1 : 25);
      expect(playout.positionMs()).toBeGreaterThanOrEqual(last);
      last = playout.positionMs();
    }
  });
});
