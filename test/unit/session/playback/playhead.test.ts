import { describe, expect, it } from "vitest";
import { Playhead } from "../../../../src/session/playback/playhead.ts";
import { TICKS_PER_MS } from "../../../../src/timing/ticks.ts";

const ms = (count: number): number => count * TICKS_PER_MS;

describe("Playhead", () => {
  it("stands still until it is started, then runs in real time up to the write head", () => {
    const playhead = new Playhead();
    expect(playhead.at(5000, ms(1000))).toBe(0);
    playhead.start(0, 5000);
    expect(playhead.at(5250, ms(1000))).toBe(ms(250));
    expect(playhead.at(9000, ms(1000))).toBe(ms(1000));
  });

  it("goes on from where it waited, not from where the wall clock is", () => {
    const playhead = new Playhead();
    playhead.start(0, 0);
    playhead.stop(ms(400));
    expect(playhead.at(10_000, ms(5000))).toBe(ms(400));
    playhead.start(ms(400), 10_000);
    expect(playhead.at(10_100, ms(5000))).toBe(ms(500));
  });

  it("msAt() is when a position is passed", () => {
    const playhead = new Playhead();
    playhead.start(ms(100), 2000);
    expect(playhead.msAt(ms(350))).toBe(2250);
  });
});
