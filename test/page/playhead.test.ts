import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Playhead } from "../../src/page/sound/playhead.ts";

describe("Playhead", () => {
  it("positionAt() follows the run that plays and waits at its end", () => {
    const playhead = new Playhead(0);
    playhead.schedule({ startS: 10, atMs: 0, durationMs: 1000 });
    playhead.schedule({ startS: 15, atMs: 1000, durationMs: 500 });
    expect(playhead.positionAt(9)).toBe(0);
    expect(playhead.positionAt(10.25)).toBeCloseTo(250);
    expect(playhead.positionAt(13)).toBe(1000);
    expect(playhead.positionAt(15.1)).toBeCloseTo(1100);
    expect(playhead.positionAt(99)).toBe(1500);
  });

  it("positionAt() jumps over what a gap left out", () => {
    const playhead = new Playhead(0);
    playhead.schedule({ startS: 1, atMs: 0, durationMs: 100 });
    playhead.schedule({ startS: 1.1, atMs: 500, durationMs: 100 });
    expect(playhead.positionAt(1.0999)).toBeLessThan(100);
    expect(playhead.positionAt(1.1)).toBeCloseTo(500);
  });

  it("cut() keeps the position and forgets what was to come", () => {
    const playhead = new Playhead(0);
    playhead.schedule({ startS: 1, atMs: 0, durationMs: 1000 });
    playhead.schedule({ startS: 5, atMs: 1000, durationMs: 1000 });
    playhead.cut(1.4);
    expect(playhead.positionAt(1.5)).toBeCloseTo(400);
    expect(playhead.positionAt(6)).toBeCloseTo(400);
  });

  it("is the same however audio is cut into blocks", () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 60 }), { minLength: 1, maxLength: 50 }), (blocksMs) => {
        const whole = new Playhead(0);
        const cut = new Playhead(0);
        const totalMs = blocksMs.reduce((sum, ms) => sum + ms, 0);
        whole.schedule({ startS: 2, atMs: 40, durationMs: totalMs });
        let passedMs = 0;
        for (const ms of blocksMs) {
          cut.schedule({ startS: 2 + passedMs / 1000, atMs: 40 + passedMs, durationMs: ms });
          passedMs += ms;
        }
        for (let timeS = 1.9; timeS < 2.1 + totalMs / 1000; timeS += 0.013) {
          expect(cut.positionAt(timeS)).toBeCloseTo(whole.positionAt(timeS), 6);
        }
      }),
    );
  });

  it("never goes back while time goes on", () => {
    const playhead = new Playhead(0);
    let startS = 0.06;
    let latestMs = 0;
    for (let block = 0; block < 2000; block += 1) {
      playhead.schedule({ startS, atMs: block * 20, durationMs: 20 });
      // Every now and then the network stalls, far more often than runs are kept.
      startS += block % 3 === 0 ? 0.05 : 0.02;
      const nowMs = playhead.positionAt(startS - 0.03);
      expect(nowMs).toBeGreaterThanOrEqual(latestMs);
      latestMs = nowMs;
    }
  });
});
