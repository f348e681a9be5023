import { describe, expect, it } from "vitest";
import { TokenPace } from "../../../src/text/token-pace.ts";

function paceOf(gapsMs: readonly number[], startMs = 5000): TokenPace {
  const pace = new TokenPace();
  let nowMs = startMs;
  pace.token(nowMs);
  for (const gapMs of gapsMs) {
    nowMs += gapMs;
    pace.token(nowMs);
  }
  return pace;
}

describe("TokenPace", () => {
  it("knows nothing before four tokens: half of the most", () => {
    expect(new TokenPace().stallMs(400)).toBe(200);
    expect(paceOf([20, 20]).stallMs(400)).toBe(200);
    expect(paceOf([20, 20, 20]).stallMs(400)).not.toBe(200);
  });

  it("remembers the last token", () => {
    expect(new TokenPace().lastMs).toBe(0);
    expect(paceOf([20, 30], 100).lastMs).toBe(150);
  });

  it.each([
    ["fast and even", Array<number>(40).fill(10), 80, 80],
    ["slow and even", Array<number>(40).fill(200), 200, 210],
    ["in bursts", Array.from({ length: 80 }, (_, i) => (i % 4 === 3 ? 100 : 0)), 100, 300],
    ["slower than may be waited", Array<number>(40).fill(900), 500, 500],
  ])("waits as long as a stream that is %s asks for", (_name, gapsMs, leastMs, mostMs) => {
    const stallMs = paceOf(gapsMs).stallMs(500);
    expect(stallMs).toBeGreaterThanOrEqual(leastMs);
    expect(stallMs).toBeLessThanOrEqual(mostMs);
  });

  it("follows a stream that changes its pace", () => {
    const even = Array<number>(40).fill(30);
    expect(paceOf([...even, ...Array<number>(40).fill(300)]).stallMs(1000)).toBeGreaterThan(290);
    expect(paceOf([...Array<number>(40).fill(300), ...even]).stallMs(1000)).toBeLessThan(150);
  });

  it("learns nothing from gaps over a second, nor from a clock that jumps back", () => {
    const even = Array<number>(40).fill(50);
    expect(paceOf([...even, 60_000, 1001]).stallMs(1000)).toBe(paceOf(even).stallMs(1000));
    expect(paceOf([2000, 3000, 4000, 5000]).stallMs(400)).toBe(200);
    expect(paceOf([...even, -5000]).stallMs(1000)).toBeLessThan(200);
  });

  it("never waits longer than the most, however small", () => {
    expect(paceOf(Array<number>(10).fill(10)).stallMs(50)).toBe(50);
  });
});
